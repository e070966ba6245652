package dev.laneway.consumers;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.udf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests Spark's own tables of Parquet files with laneway-hadoop and its committer. */
class SparkTest {
  private static final int PARTITIONS = 200;
  private static final int ROWS_OF_A_PARTITION = 200;
  private static final long ROWS = (long) PARTITIONS * ROWS_OF_A_PARTITION;

  private final SparkSession spark = Cluster.session();

  private static List<String> files(String below) throws IOException {
    return Cluster.keys(below).stream().filter(key -> key.endsWith(".parquet")).toList();
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void aTableIsWrittenReadInPartCompactedAndDeleted(String scheme) throws IOException {
    String folder = "spark-" + scheme + "-" + System.nanoTime();
    String table = scheme + "://lake/" + folder + "/wide";
    List<Column> columns = new ArrayList<>();
    columns.add(col("id"));
    for (int i = 1; i < 50; i++) {
      columns.add(col("id").multiply(i).alias("c" + i));
    }
    spark.range(0, ROWS, 1, PARTITIONS).select(columns.toArray(Column[]::new)).write().parquet(table);
    assertEquals(PARTITIONS, files(folder + "/wide/").size());
    assertTrue(Cluster.keys(folder + "/wide/_SUCCESS").size() == 1);
    assertEquals(0, Cluster.uploads());

    Row some = spark.read().parquet(table)
        .filter(col("c7").geq(7 * 1000).and(col("c7").lt(7 * 3000)))
        .agg(
            count("id"),
            sum("c49"),
            max("c7"))
        .first();
    assertEquals(2000, some.getLong(0));
    assertEquals(49L * (1000L + 2999L) * 2000 / 2, some.getLong(1));
    assertEquals(7L * 2999, some.getLong(2));

    String compacted = scheme + "://lake/" + folder + "/compacted";
    spark.read().parquet(table).coalesce(4).write().parquet(compacted);
    assertEquals(4, files(folder + "/compacted/").size());
    assertEquals(ROWS, spark.read().parquet(compacted).distinct().count());

    FileSystem files = new Path(table).getFileSystem(spark.sparkContext().hadoopConfiguration());
    assertTrue(files.delete(new Path(table), true));
    assertEquals(List.of(), Cluster.keys(folder + "/wide/"));
    assertFalse(files.exists(new Path(table)));
  }

  /** Doubles a number. In one task's first attempt, it ends the executor's process once some rows are written. */
  private static final class Killing implements UDF1<Long, Long> {
    private static final long serialVersionUID = 1L;

    @Override
    public Long call(Long id) {
      TaskContext task = TaskContext.get();
      if (task != null && task.attemptNumber() == 0 && task.partitionId() == 5 && id % 10_000 == 9_000) {
        Runtime.getRuntime().halt(137);
      }
      return 2 * id;
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void aJobWhoseExecutorIsKilledEndsRight(String scheme) throws Exception {
    String folder = "killed-" + scheme + "-" + System.nanoTime();
    String table = scheme + "://lake/" + folder;
    Dataset<Row> rows = spark.range(0, 80_000, 1, 8)
        .select(col("id"), udf(new Killing(), DataTypes.LongType).apply(col("id")).alias("twice"));
    AtomicInteger lost = new AtomicInteger();
    SparkListener listener = new SparkListener() {
      @Override
      public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
        lost.incrementAndGet();
      }
    };
    spark.sparkContext().addSparkListener(listener);
    rows.write().parquet(table);
    spark.sparkContext().listenerBus().waitUntilEmpty();
    spark.sparkContext().removeSparkListener(listener);
    assertEquals(1, lost.get(), "one executor was killed");
    assertEquals(8, files(folder + "/").size(), "of each task one attempt");
    Dataset<Row> read = spark.read().parquet(table);
    assertEquals(80_000, read.count());
    assertEquals(80_000, read.filter(col("twice").equalTo(col("id").multiply(2))).select("id").distinct().count());
    assertEquals(0, Cluster.uploads(), "of the attempt that was killed nothing is left");
    assertEquals(List.of(), Cluster.keys(folder + "/").stream().filter(key -> key.contains("__")).toList());
  }
}
