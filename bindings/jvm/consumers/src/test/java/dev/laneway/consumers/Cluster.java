package dev.laneway.consumers;

import dev.laneway.Bucket;
import dev.laneway.Laneway;
import dev.laneway.ObjectMeta;
import dev.laneway.hadoop.EmbeddedStore;
import dev.laneway.hadoop.UploadCommitterFactory;
import dev.laneway.iceberg.LanewayFileIO;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;

/** Spark with two executors in processes of their own, set up by configuration alone, as users do it. */
final class Cluster {
  static final EmbeddedStore STORE = EmbeddedStore.with("lake");

  private static SparkSession session;

  private Cluster() {}

  static synchronized SparkSession session() {
    if (session == null) {
      try {
        Files.createDirectories(Path.of(System.getenv("SPARK_HOME"), "jars"));
      } catch (IOException failed) {
        throw new UncheckedIOException(failed);
      }
      // Surefire's own class path is a jar that names others.
      String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
      SparkSession.Builder builder = SparkSession.builder()
          .master("local-cluster[2,1,1024]")
          .config("spark.executor.extraClassPath", classes)
          .config("spark.executor.memory", "1g")
          .config("spark.ui.enabled", "false")
          .config("spark.sql.shuffle.partitions", "4")
          .config("spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a", UploadCommitterFactory.class.getName())
          .config("spark.hadoop.mapreduce.outputcommitter.factory.scheme.gs", UploadCommitterFactory.class.getName())
          .config("spark.sql.sources.commitProtocolClass", "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol")
          .config(
              "spark.sql.parquet.output.committer.class",
              "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter")
          .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions");
      Configuration reached = new Configuration(false);
      STORE.configure(reached);
      reached.forEach(one -> builder.config("spark.hadoop." + one.getKey(), one.getValue()));
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

  /** Returns the keys that the store has below a key of the bucket. */
  static List<String> keys(String below) throws IOException {
    try (Laneway laneway = client(); Stream<ObjectMeta> objects = laneway.bucket("s3://lake/").list(below)) {
      return objects.map(ObjectMeta::key).toList();
    }
  }

  /** Returns the uploads that were neither completed nor aborted. */
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
