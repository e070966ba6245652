package dev.laneway.consumers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.iceberg.LanewayFileIO;
import java.io.IOException;
import java.util.List;
import java.util.TreeSet;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests Iceberg's runtime for Spark, which reads and writes the files of tables through laneway-iceberg. */
class IcebergTest {
  private final SparkSession spark = Cluster.session();

  private List<String> files(String table) {
    return spark.sql("SELECT file_path FROM " + table + ".files").collectAsList().stream()
        .map(row -> row.getString(0))
        .toList();
  }

  private static TreeSet<String> stored(Table table) throws IOException {
    String below = table.location().substring(table.location().indexOf("lake/") + 5) + "/data/";
    TreeSet<String> stored = new TreeSet<>();
    Cluster.keys(below).stream().filter(key -> !key.endsWith("/")).forEach(key -> stored.add(key.substring(below.length())));
    return stored;
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void aTableIsCreatedAppendedToChangedCompactedExpiredAndRead(String catalog) throws Exception {
    String name = catalog + ".db.rows_" + System.nanoTime();
    spark.sql("CREATE TABLE " + name + " (id BIGINT, text STRING, day INT) USING iceberg PARTITIONED BY (day)");
    for (int i = 0; i < 4; i++) {
      spark.sql("INSERT INTO " + name + " SELECT id, concat('row ', id), CAST(id % 3 AS INT) FROM range("
          + i * 3000 + ", " + (i + 1) * 3000 + ", 1, 2)");
    }
    Table table = Spark3Util.loadIcebergTable(spark, name);
    assertInstanceOf(LanewayFileIO.class, table.io());
    int before = files(name).size();
    assertTrue(before >= 12, () -> "few files: " + before);
    spark.sql("DELETE FROM " + name + " WHERE id >= 11000 AND id % 2 = 0");

    Row compacted = spark.sql("CALL " + catalog + ".system.rewrite_data_files(table => '" + name.substring(catalog.length() + 1)
        + "', options => map('rewrite-all', 'true'))").first();
    assertTrue(compacted.getInt(0) >= 12, compacted::toString);
    spark.sql("INSERT INTO " + name + " VALUES (-1, 'row -1', 0)");
    Row expired = spark.sql("CALL " + catalog + ".system.expire_snapshots(table => '" + name.substring(catalog.length() + 1)
        + "', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)").first();
    assertTrue(expired.getLong(0) >= 12, expired::toString);

    TreeSet<String> named = new TreeSet<>();
    files(name).forEach(file -> named.add(file.substring(file.indexOf("/data/") + 6)));
    assertEquals(named, stored(table), "what no snapshot names has gone, and nothing else");
    Row counted = spark.sql("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM " + name
        + " WHERE text = concat('row ', id)").first();
    assertEquals(11_501, counted.getLong(0));
    assertEquals(11_501, counted.getLong(1));
    assertEquals(-1, counted.getLong(2));
    assertEquals(11_999, counted.getLong(3));
    spark.sql("DROP TABLE " + name + " PURGE");
    assertEquals(new TreeSet<>(), stored(table));
  }
}
