package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.hadoop.EmbeddedStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.LongStream;
import java.util.stream.StreamSupport;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests the files of a table in one of Hadoop's catalogs, from the table's creation to its removal. */
@ParameterizedClass
@CsvSource({"gs,false", "s3a,false", "gs,true", "s3a,true"})
class TablesTest {
  private static final Schema SCHEMA = new Schema(
      Types.NestedField.required(1, "id", Types.LongType.get()),
      Types.NestedField.required(2, "text", Types.StringType.get()));

  private static final TableIdentifier NAME = TableIdentifier.of("db", "rows");

  /** Each fault hits one request. Laneway retries the request, so the fault has no effect on the table. */
  private static final String[] FAULTS = {
    "get:3 reset@100",
    "get:5 status 503",
    "get:8 truncate",
    "head:4 drop",
    "put:2 lose-answer",
    "put:5 reset@100",
    "put:7 status 503",
    "copy:2 lose-answer",
    "copy:3 status 503",
    "list:2 status 503",
    "delete:2 lose-answer",
    "delete-many:1 lose-answer",
    "batch:1 lose-answer",
  };

  private final EmbeddedStore store;
  private final String warehouse;
  private final HadoopCatalog catalog = new HadoopCatalog();

  TablesTest(String scheme, boolean isFaulty) {
    // Hadoop caches one filesystem for each bucket name.
    String lake = isFaulty ? "faulty-" + scheme : "lake";
    store = isFaulty ? EmbeddedStore.broken(lake, FAULTS) : EmbeddedStore.with(lake);
    warehouse = scheme + "://" + lake + "/warehouse-" + scheme + "-" + System.nanoTime();
    catalog.setConf(store.configuration());
    Map<String, String> properties = Catalogs.properties(store);
    properties.put("warehouse", warehouse);
    catalog.initialize("lake", properties);
  }

  @AfterEach
  void close() throws IOException {
    catalog.close();
  }

  /** Writes a file with a row for each number from {@code from} up to {@code to}. */
  private static DataFile file(Table table, String name, long from, long to) throws IOException {
    OutputFile output = table.io().newOutputFile(table.location() + "/data/" + name + ".parquet");
    DataWriter<Record> writer = Parquet.writeData(output)
        .schema(SCHEMA)
        .withSpec(PartitionSpec.unpartitioned())
        .createWriterFunc(type -> GenericParquetWriter.create(SCHEMA, type))
        .build();
    try (writer) {
      for (long id = from; id < to; id++) {
        writer.write(GenericRecord.create(SCHEMA).copy(Map.of("id", id, "text", "row " + id)));
      }
    }
    return writer.toDataFile();
  }

  private static List<Long> ids(Table table) throws IOException {
    List<Long> ids = new ArrayList<>();
    try (CloseableIterable<Record> rows =
        IcebergGenerics.read(table).where(Expressions.lessThan("id", 1_000_000L)).build()) {
      for (Record row : rows) {
        assertEquals("row " + row.getField("id"), row.getField("text"));
        ids.add((Long) row.getField("id"));
      }
    }
    ids.sort(null);
    return ids;
  }

  private Set<String> names(LanewayFileIO io, String under) {
    Set<String> names = new TreeSet<>();
    StreamSupport.stream(io.listPrefix(under).spliterator(), false).map(FileInfo::location).forEach(names::add);
    return names;
  }

  @Test
  void aTableIsCreatedAppendedToReadThinnedOutExpiredAndDropped() throws IOException {
    Table table = catalog.createTable(NAME, SCHEMA);
    LanewayFileIO io = assertInstanceOf(LanewayFileIO.class, table.io());
    AppendFiles append = table.newAppend();
    for (int i = 0; i < 4; i++) {
      append.appendFile(file(table, "part-" + i, i * 1000, (i + 1) * 1000));
    }
    append.commit();
    assertEquals(LongStream.range(0, 4000).boxed().toList(), ids(catalog.loadTable(NAME)));

    // From the statistics, Iceberg detects which whole files it can delete.
    table.newDelete().deleteFromRowFilter(Expressions.lessThan("id", 2000L)).commit();
    table.newRewrite()
        .deleteFile(only(table, "part-2"))
        .deleteFile(only(table, "part-3"))
        .addFile(file(table, "compacted", 2000, 4000))
        .commit();
    assertEquals(LongStream.range(2000, 4000).boxed().toList(), ids(catalog.loadTable(NAME)));
    assertEquals(5, names(io, table.location() + "/data/").size(), "nothing has gone yet");

    // A snapshot has removed files. Iceberg deletes them after all older snapshots have expired.
    table.newAppend().appendFile(file(table, "later", 4000, 4010)).commit();
    Snapshot last = table.currentSnapshot();
    table.expireSnapshots().expireOlderThan(last.timestampMillis() + 1).retainLast(1).commit();
    String data = table.location() + "/data/";
    assertEquals(Set.of(data + "compacted.parquet", data + "later.parquet"), names(io, data));
    assertEquals(LongStream.range(2000, 4010).boxed().toList(), ids(catalog.loadTable(NAME)));

    assertTrue(catalog.dropTable(NAME, true));
    assertEquals(Set.of(), names(io, table.location() + "/"));
    assertThrows(NoSuchTableException.class, () -> catalog.loadTable(NAME));
  }

  private static DataFile only(Table table, String name) throws IOException {
    try (var files = table.newScan().planFiles()) {
      return StreamSupport.stream(files.spliterator(), false)
          .map(task -> task.file())
          .filter(file -> file.location().endsWith("/" + name + ".parquet"))
          .findFirst()
          .orElseThrow();
    }
  }
}
