package dev.laneway.consumers;

import dev.laneway.Bucket;
import dev.laneway.Laneway;
import dev.laneway.ObjectMeta;
import dev.laneway.hadoop.EmbeddedStore;
import dev.laneway.iceberg.LanewayFileIO;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;

/** Spark with two executors in separate processes, set up by configuration alone, as users do. */
final class Cluster {
  /** The store refuses to copy keys with this word, so a job that renames such files fails. */
  static final String UNCOPIED = "uncopied";

  /** True if the classes of spark-hadoop-cloud take part in the commit. */
  static final boolean IS_BY_CLOUD = Boolean.getBoolean("laneway.consumers.cloud");

  static final EmbeddedStore STORE = EmbeddedStore.broken("lake", "copy key=*" + UNCOPIED + "* status 403");

  private static final Path README = Path.of("../README.md");

  private static SparkSession session;

  private Cluster() {}

  static synchronized SparkSession session() {
    if (session == null) {
      try {
        Files.createDirectories(Path.of(System.getenv("SPARK_HOME"), "jars"));
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
      // Surefire's own class path is a jar that lists other jars.
      String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
      SparkSession.Builder builder = SparkSession.builder()
          .master("local-cluster[2,1,1024]")
          .config("spark.executor.extraClassPath", classes)
          .config("spark.executor.memory", "1g")
          .config("spark.ui.enabled", "false")
          .config("spark.sql.shuffle.partitions", "4")
          .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions");
      Configuration reached = new Configuration(false);
      STORE.configure(reached);
      // The filesystem's classes come from the README.
      reached.iterator().forEachRemaining(one -> {
        if (!one.getKey().endsWith(".impl")) {
          builder.config("spark.hadoop." + one.getKey(), one.getValue());
        }
      });
      quickStart().forEach(builder::config);
      if (IS_BY_CLOUD) {
        builder
            .config("spark.sql.sources.commitProtocolClass", "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol")
            .config(
                "spark.sql.parquet.output.committer.class",
                "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter");
      }
      for (String scheme : List.of("gs", "s3a")) {
        String catalog = "spark.sql.catalog." + scheme;
        builder.config(catalog, "org.apache.iceberg.spark.SparkCatalog")
            .config(catalog + ".type", "hadoop")
            .config(catalog + ".warehouse", scheme + "://lake/iceberg-" + scheme)
            .config(catalog + ".io-impl", LanewayFileIO.class.getName())
            .config(catalog + ".s3.endpoint", STORE.url())
            .config(catalog + ".s3.path-style-access", "true")
            .config(catalog + ".client.region", "us-east-1")
            .config(catalog + ".s3.access-key-id", "laneway")
            .config(catalog + ".s3.secret-access-key", "lanewaysecret")
            .config(catalog + ".gcs.service.host", STORE.url())
            .config(catalog + ".gcs.no-auth", "true");
      }
      session = builder.getOrCreate();
    }
    return session;
  }

  /** Returns the lines of the README's quick start. The tests' class path already has the jars. */
  private static Map<String, String> quickStart() {
    Map<String, String> lines = new LinkedHashMap<>();
    try {
      String page = Files.readString(README);
      int begin = page.indexOf("```\n") + 4;
      page.substring(begin, page.indexOf("```", begin)).lines().forEach(line -> {
        String[] words = line.strip().split("\\s+", 2);
        if (!words[0].equals("spark.jars")) {
          lines.put(words[0], words[1]);
        }
      });
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
    return lines;
  }

  /** Returns the keys that the store has below a key of the bucket. */
  static List<String> keys(String below) throws IOException {
    try (Laneway laneway = client(); Stream<ObjectMeta> objects = laneway.bucket("s3://lake/").list(below)) {
      return objects.map(ObjectMeta::key).toList();
    }
  }

  /** Returns the number of uploads that were neither completed nor aborted. */
  static int uploads() throws IOException {
    try (Laneway laneway = client()) {
      Bucket bucket = laneway.bucket("s3://lake/");
      return bucket.multipartUploads("").size();
    }
  }

  private static Laneway client() throws IOException {
    return Laneway.builder().s3Endpoint(STORE.url()).region("us-east-1").accessKey("laneway", "lanewaysecret").build();
  }
}
