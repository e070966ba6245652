package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.IOStatisticsSupport;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.RecordReader;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests parquet-hadoop on the filesystem. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class ParquetTest {
  private static final int ROWS = 60_000;

  private static final MessageType SCHEMA = MessageTypeParser.parseMessageType(
      "message row { required int64 id; required binary text (UTF8); required double a; required double b; }");

  private static final MessageType SOME = MessageTypeParser.parseMessageType(
      "message row { required int64 id; required double b; }");

  private final String scheme;
  private final Configuration conf = EmbeddedStore.with("lake").configuration();
  private final FileSystem files;
  private final Path path;

  ParquetTest(String scheme) throws IOException {
    this.scheme = scheme;
    conf.setBoolean("parquet.hadoop.vectored.io.enabled", true);
    path = new Path(scheme + "://lake/parquet-" + scheme + "-" + System.nanoTime() + ".parquet");
    files = FileSystem.get(path.toUri(), conf);
  }

  @AfterEach
  void close() throws IOException {
    files.delete(path, false);
  }

  private void write() throws IOException {
    try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(HadoopOutputFile.fromPath(path, conf))
        .withType(SCHEMA)
        .withRowGroupSize(256L << 10)
        .withConf(conf)
        .build()) {
      for (int i = 0; i < ROWS; i++) {
        SimpleGroup row = new SimpleGroup(SCHEMA);
        row.add("id", (long) i);
        row.add("text", "row " + i * 7919L % 104_729);
        row.add("a", i * 0.5);
        row.add("b", Math.sqrt(i));
        writer.write(row);
      }
    }
  }

  @Test
  void someColumnsAreReadByTheirRangesAndTheFooterWithTheOpeningRequest() throws IOException {
    write();
    long vectoredBefore = vectored();
    long before = requests();
    long rows = 0;
    int groups = 0;
    HadoopInputFile file = HadoopInputFile.fromPath(path, conf);
    long opened = 0;
    try (ParquetFileReader reader = ParquetFileReader.open(file)) {
      opened = requests();
      reader.setRequestedSchema(SOME);
      for (PageReadStore pages = reader.readNextRowGroup(); pages != null; pages = reader.readNextRowGroup()) {
        groups++;
        RecordReader<Group> records =
            new ColumnIOFactory().getColumnIO(SOME).getRecordReader(pages, new GroupRecordConverter(SOME));
        for (long left = pages.getRowCount(); left > 0; left--) {
          Group row = records.read();
          assertEquals(rows, row.getLong("id", 0));
          assertEquals(Math.sqrt(rows), row.getDouble("b", 0));
          rows++;
        }
      }
    }
    assertEquals(ROWS, rows);
    assertTrue(groups > 2, "only " + groups + " row groups");
    // One request for the file's status, and one for its footer. Azure has no ranges from the end, so opening the file takes
    // its status once more.
    assertEquals(before + (scheme.equals("abfss") ? 3 : 2), opened);
    assertEquals(vectoredBefore + groups, vectored());
    assertTrue(requests() - opened <= 2L * groups, () -> "too many requests for the ranges");
  }

  private long vectored() {
    return IOStatisticsSupport.retrieveIOStatistics((IOStatisticsSource) files)
        .counters()
        .get(StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS);
  }

  private long requests() throws IOException {
    try (Connection connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), conf))) {
      return connection.counters().orElseThrow().requests();
    }
  }
}
