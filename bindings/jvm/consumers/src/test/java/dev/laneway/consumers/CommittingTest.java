package dev.laneway.consumers;

import static org.apache.spark.sql.functions.col;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.Trigger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Tuple2;

/**
 * Jobs of each kind commit with exactly the README's lines, both with and without the jars of S3A and
 * spark-hadoop-cloud. The store refuses copies in the folders where the jobs write, so a job that renames its files
 * fails. Two kinds of files are renamed in other folders: a stream's own log, and the partitions that Spark overwrites.
 */
@Tag("committing")
class CommittingTest {
  private final SparkSession spark = Cluster.session();

  private static String folder(String what, String scheme) {
    return what + "-" + scheme + "-" + System.nanoTime();
  }

  private static List<String> files(String below) throws IOException {
    return Cluster.keys(below).stream().filter(key -> key.contains("/part-")).toList();
  }

  @ParameterizedTest
  @CsvSource({"s3a, parquet", "s3a, csv", "s3a, orc", "s3a, json", "gs, parquet", "gs, csv", "gs, orc", "gs, json"})
  void aTableIsWrittenWithoutRenames(String scheme, String format) throws IOException {
    String folder = folder(Cluster.UNCOPIED + "-" + format, scheme);
    String table = scheme + "://lake/" + folder;
    Dataset<Row> rows = spark.range(0, 900, 1, 3).select(col("id"), col("id").mod(3).alias("day"));
    rows.write().partitionBy("day").format(format).save(table);
    assertEquals(9, files(folder + "/").size());
    assertTrue(Cluster.keys(folder + "/").contains(folder + "/_SUCCESS"));
    assertEquals(900, spark.read().schema("id BIGINT, day INT").format(format).load(table).select("id").distinct().count());
    rows.write().partitionBy("day").format(format).mode(SaveMode.Append).save(table);
    assertEquals(18, files(folder + "/").size());
    assertEquals(0, Cluster.uploads());
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void aStreamIsWrittenBatchByBatch(String scheme) throws Exception {
    String folder = folder("stream", scheme);
    String place = scheme + "://lake/" + folder;
    for (int batch = 0; batch < 2; batch++) {
      spark.range(batch * 100L, (batch + 1) * 100L, 1, 2).write().mode(SaveMode.Append).json(place + "/source");
      spark.readStream().schema("id BIGINT").json(place + "/source")
          .writeStream().format("parquet")
          .option("path", place + "/sink")
          .option("checkpointLocation", place + "/checkpoint")
          .trigger(Trigger.AvailableNow())
          .start()
          .awaitTermination();
    }
    assertEquals(200, spark.read().parquet(place + "/sink").select("id").distinct().count());
    assertEquals(0, Cluster.uploads());
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void rowsOfAnRddAreSavedByTheNewApi(String scheme) throws IOException {
    String folder = folder(Cluster.UNCOPIED + "-rdd", scheme);
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    context.parallelize(List.of(1, 2, 3, 4), 2)
        .mapToPair(number -> new Tuple2<>(NullWritable.get(), new Text("row " + number)))
        .saveAsNewAPIHadoopFile(
            scheme + "://lake/" + folder, NullWritable.class, Text.class, TextOutputFormat.class, context.hadoopConfiguration());
    assertEquals(2, files(folder + "/").size());
    assertEquals(4, spark.read().text(scheme + "://lake/" + folder).distinct().count());
    assertEquals(0, Cluster.uploads());
  }

  /** Passes on only the lines, without their offsets in the file. */
  public static final class Lines extends Mapper<LongWritable, Text, NullWritable, Text> {
    @Override
    protected void map(LongWritable at, Text line, Context context) throws IOException, InterruptedException {
      context.write(NullWritable.get(), line);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"s3a", "gs"})
  void aJobOfMapReduceCommits(String scheme) throws Exception {
    String folder = folder(Cluster.UNCOPIED + "-mapreduce", scheme);
    Path place = new Path(scheme + "://lake/" + folder);
    Configuration conf = new Configuration(spark.sparkContext().hadoopConfiguration());
    conf.set("mapreduce.framework.name", "local");
    FileSystem files = place.getFileSystem(conf);
    for (int i = 0; i < 3; i++) {
      try (var out = files.create(new Path(place, "source/" + i))) {
        out.writeBytes("line " + i + "\n");
      }
    }
    Job job = Job.getInstance(conf);
    job.setMapperClass(Lines.class);
    job.setNumReduceTasks(0);
    job.setOutputKeyClass(NullWritable.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.addInputPath(job, new Path(place, "source"));
    FileOutputFormat.setOutputPath(job, new Path(place, "output"));
    assertTrue(job.waitForCompletion(false));
    assertEquals(3, files(folder + "/output/").size());
    assertEquals(3, spark.read().text(place + "/output").distinct().count());
    assertEquals(0, Cluster.uploads());
  }

  private Map<Integer, Long> days(String table) {
    Map<Integer, Long> days = new TreeMap<>();
    spark.read().parquet(table).groupBy("day").count().collectAsList()
        .forEach(row -> days.put(row.getInt(0), row.getLong(1)));
    return days;
  }

  @ParameterizedTest
  @CsvSource({"s3a, true", "s3a, false", "gs, true", "gs, false"})
  void overwrittenPartitionsAreReplacedAndOthersStay(String scheme, boolean isInSession) throws IOException {
    String folder = folder("overwritten", scheme);
    String table = scheme + "://lake/" + folder;
    Dataset<Row> rows = spark.range(0, 30, 1, 3).select(col("id"), col("id").mod(3).alias("day"));
    rows.write().partitionBy("day").parquet(table);
    Dataset<Row> some = rows.filter(col("day").equalTo(1).and(col("id").lt(21)));
    if (isInSession) {
      spark.conf().set("spark.sql.sources.partitionOverwriteMode", "dynamic");
    }
    try {
      some.write().partitionBy("day").mode(SaveMode.Overwrite)
          .option("partitionOverwriteMode", "dynamic").parquet(table);
      assertEquals(Map.of(0, 10L, 1, 7L, 2, 10L), days(table));
      // Appending replaces no rows, whatever the partition overwrite mode is.
      some.write().partitionBy("day").mode(SaveMode.Append).parquet(table);
      assertEquals(Map.of(0, 10L, 1, 14L, 2, 10L), days(table));
    } finally {
      spark.conf().unset("spark.sql.sources.partitionOverwriteMode");
    }
    assertEquals(0, Cluster.uploads());
    assertEquals(
        List.of(), Cluster.keys(folder + "/").stream().filter(key -> key.contains("staging") || key.contains("laneway-")).toList());
  }
}
