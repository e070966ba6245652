package dev.laneway.benches;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;

/** Reads three of the fifty columns of a Parquet file with 64 row groups. */
final class Columns {
  private static final int COLUMNS = 50;
  private static final int GROUPS = 64;
  private static final int ROWS_OF_A_GROUP = 10_000;

  private Columns() {}

  private static MessageType schema(List<Integer> columns) {
    return new MessageType("row", columns.stream()
        .map(i -> (Type) new PrimitiveType(Type.Repetition.REQUIRED, PrimitiveTypeName.DOUBLE, "c" + i))
        .toList());
  }

  /** Writes numbers that don't compress. */
  static Map<String, Object> write(Path place, Configuration conf) throws IOException {
    MessageType schema = schema(IntStream.range(0, COLUMNS).boxed().toList());
    SplittableRandom random = new SplittableRandom(7);
    try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(HadoopOutputFile.fromPath(place, conf))
        .withType(schema)
        .withDictionaryEncoding(false)
        .withRowGroupRowCountLimit(ROWS_OF_A_GROUP)
        .withConf(conf)
        .build()) {
      for (int i = 0; i < GROUPS * ROWS_OF_A_GROUP; i++) {
        SimpleGroup row = new SimpleGroup(schema);
        for (int column = 0; column < COLUMNS; column++) {
          row.add(column, random.nextDouble());
        }
        writer.write(row);
      }
    }
    return Map.of();
  }

  static Map<String, Object> read(Path place, Configuration conf) throws IOException {
    int groups = 0;
    try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(place, conf))) {
      reader.setRequestedSchema(schema(List.of(3, 20, 41)));
      for (PageReadStore pages = reader.readNextRowGroup(); pages != null; pages = reader.readNextRowGroup()) {
        groups++;
      }
    }
    return Map.of("ok", groups == GROUPS);
  }
}
