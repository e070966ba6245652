package dev.laneway.consumers;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.laneway.Laneway;
import dev.laneway.ObjectMeta;
import dev.laneway.hadoop.EmbeddedStore;
import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests Hudi's tables with laneway-hadoop. */
class HudiTest {
  private static final int ROWS = 3000;
  private static final int DAYS = 3;
  private static final int UPSERTS = 3;

  /** The class of another connector. If it is set, the test uses it instead of Laneway, and only with S3. */
  private static final String IMPL = System.getProperty("laneway.consumers.impl", "");

  private static final String URL = endpoint();

  private final SparkSession spark = session();

  private static String endpoint() {
    String given = System.getProperty("laneway.consumers.endpoint", "");
    return given.isEmpty() ? EmbeddedStore.with("lake").url() : given;
  }

  private static SparkSession session() {
    SparkSession.Builder builder = SparkSession.builder()
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", "target/warehouse")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog");
    Configuration reached = new Configuration(false);
    EmbeddedStore.configure(reached, URL);
    if (!IMPL.isEmpty()) {
      reached.set("fs.s3a.impl", IMPL);
    }
    reached.forEach(one -> builder.config("spark.hadoop." + one.getKey(), one.getValue()));
    return builder.getOrCreate();
  }

  /** Returns the keys that the store has below a key of the bucket. */
  private static List<String> keys(String below) throws IOException {
    try (Laneway laneway =
            Laneway.builder().s3Endpoint(URL).region("us-east-1").accessKey("laneway", "lanewaysecret").build();
        Stream<ObjectMeta> objects = laneway.bucket("s3://lake/").list(below)) {
      return objects.map(ObjectMeta::key).toList();
    }
  }

  /** Returns the files with rows, without the files of Hudi's own tables. */
  private static List<String> files(String folder) throws IOException {
    return keys(folder + "/").stream().filter(key -> key.endsWith(".parquet") && !key.contains("/.hoodie/")).toList();
  }

  private void upsert(String table, Column which, int version) {
    Dataset<Row> rows = spark.range(0, ROWS, 1, 2)
        .filter(which)
        .select(
            col("id"),
            col("id").mod(DAYS).alias("day"),
            lit(version).alias("version"),
            col("id").multiply(version).alias("amount"));
    rows.write()
        .format("hudi")
        .option("hoodie.table.name", "rows")
        .option("hoodie.datasource.write.operation", "upsert")
        .option("hoodie.datasource.write.table.type", "COPY_ON_WRITE")
        .option("hoodie.datasource.write.recordkey.field", "id")
        .option("hoodie.datasource.write.partitionpath.field", "day")
        .option("hoodie.datasource.write.precombine.field", "version")
        .option("hoodie.upsert.shuffle.parallelism", "2")
        .option("hoodie.clean.automatic", "true")
        .option("hoodie.clean.policy", "KEEP_LATEST_FILE_VERSIONS")
        .option("hoodie.clean.fileversions.retained", "1")
        .mode(version == 1 ? SaveMode.Overwrite : SaveMode.Append)
        .save(table);
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void aTableIsUpsertedAndCleaned(String scheme) throws IOException {
    assumeTrue(IMPL.isEmpty() || scheme.equals("s3a"), "a measured connector runs alone");
    String folder = "hudi-" + scheme + "-" + System.nanoTime();
    String table = scheme + "://lake/" + folder;
    upsert(table, lit(true), 1);
    assertEquals(DAYS, files(folder).size());
    for (int version = 2; version <= UPSERTS; version++) {
      // Each upsert changes some rows of each day, so it replaces each file.
      upsert(table, col("id").mod(version).equalTo(0), version);
    }
    assertEquals(DAYS, files(folder).size(), "older versions of the files have been cleaned");
    List<String> cleans = keys(folder + "/.hoodie/timeline/").stream().filter(key -> key.endsWith(".clean")).toList();
    assertTrue(!cleans.isEmpty(), "cleaning was noted");

    Dataset<Row> read = spark.read().format("hudi").load(table);
    assertEquals(ROWS, read.select("id").distinct().count());
    assertEquals(ROWS, read.count());
    long expected = 0;
    for (long id = 0; id < ROWS; id++) {
      int last = 1;
      for (int version = 2; version <= UPSERTS; version++) {
        last = id % version == 0 ? version : last;
      }
      expected += id * last;
    }
    assertEquals(expected, read.agg(sum("amount")).first().getLong(0));
    assertEquals(0, read.filter(col("amount").notEqual(col("id").multiply(col("version")))).count());
    assertEquals(ROWS / DAYS, read.filter(col("day").equalTo(1)).count());
    assertEquals(List.of(), keys(folder + "/").stream().filter(key -> key.contains(".temp/") && !key.endsWith("/")).toList());
  }
}
