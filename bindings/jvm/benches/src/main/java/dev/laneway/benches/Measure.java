package dev.laneway.benches;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import dev.laneway.hadoop.LanewayFileSystem;
import dev.laneway.hadoop.UploadCommitterFactory;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/**
 * {@code Measure JOB CONNECTOR URL [ARGUMENT...]} runs a job through Hadoop's FileSystem. It reports the measurements
 * as a line of JSON, or in the file that {@code RIG_EXTRA} names. Connectors are {@code laneway}, {@code s3a}, {@code
 * s3a-tuned}, {@code s3a-analytics} (with AWS's analytics accelerator), {@code gcs} (Google's connector) and {@code
 * local}. The endpoint and the credentials come from AWS's environment variables, and from {@code
 * STORAGE_EMULATOR_HOST}. The times don't include the start of the JVM and the first request.
 */
public final class Measure {
  private Measure() {}

  public static void main(String[] arguments) throws Exception {
    String job = arguments[0];
    Configuration conf = configuration(arguments[1]);
    org.apache.hadoop.fs.Path place = new org.apache.hadoop.fs.Path(arguments[2]);
    FileSystem files = place.getFileSystem(conf);
    if (!job.startsWith("make")) {
      files.exists(new org.apache.hadoop.fs.Path(place.getParent(), "warm"));
    }
    OperatingSystemMXBean process = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    long cpuBefore = process.getProcessCpuTime();
    long garbageBefore = allocated();
    long begun = System.nanoTime();
    Map<String, Object> told = new LinkedHashMap<>(switch (job) {
      case "columns" -> Columns.read(place, conf);
      case "make-columns" -> Columns.write(place, conf);
      case "list" -> Trees.list(files, place);
      case "make-list" -> Trees.write(files, place);
      case "folders" -> Trees.listFolders(files, place);
      case "make-folders" -> Trees.writeFolders(files, place);
      case "small" -> Small.read(files, place);
      case "make-small" -> Small.write(files, place);
      case "memory-read" -> Memory.read(files, place, Integer.parseInt(arguments[3]));
      case "memory-write" -> Memory.write(files, place, Integer.parseInt(arguments[3]));
      case "delete" -> Trees.delete(files, place);
      case "mixed" -> Mixed.byThreads(files, place);
      case "mixedheavy" -> Mixed.byFutures(files, place);
      case "read" -> Whole.read(files, place);
      case "commit" -> Commit.run(files, place, conf, Integer.parseInt(arguments[3]));
      default -> throw new IllegalArgumentException("unknown job: " + job);
    });
    told.putIfAbsent("t0_s", (System.nanoTime() - begun) / 1e9);
    told.put("job_cpu_s", (process.getProcessCpuTime() - cpuBefore) / 1e9);
    told.put("allocated_mib", (allocated() - garbageBefore) / 1048576.0);
    String line = json(told);
    String extra = System.getenv("RIG_EXTRA");
    if (extra == null) {
      System.out.println(line);
    } else {
      Files.writeString(Path.of(extra), line);
    }
    // S3A's threads would keep the process alive for a minute.
    System.exit(0);
  }

  private static Configuration configuration(String connector) throws IOException {
    Configuration conf = new Configuration();
    String endpoint = System.getenv("AWS_ENDPOINT_URL");
    if (endpoint != null) {
      conf.set("fs.s3a.endpoint", endpoint);
      conf.set("fs.s3a.path.style.access", "true");
    }
    conf.set("fs.s3a.endpoint.region", System.getenv().getOrDefault("AWS_REGION", "us-east-1"));
    conf.set("fs.s3a.access.key", System.getenv("AWS_ACCESS_KEY_ID"));
    conf.set("fs.s3a.secret.key", System.getenv("AWS_SECRET_ACCESS_KEY"));
    String google = System.getenv("STORAGE_EMULATOR_HOST");
    if (google != null) {
      conf.set("fs.gs.storage.root.url", google + "/");
      conf.set("fs.gs.auth.type", "UNAUTHENTICATED");
    }
    conf.setBoolean("parquet.hadoop.vectored.io.enabled", true);
    switch (connector) {
      case "laneway" -> {
        conf.set("fs.s3a.impl", LanewayFileSystem.class.getName());
        conf.set("fs.gs.impl", LanewayFileSystem.class.getName());
        conf.set("mapreduce.outputcommitter.factory.scheme.s3a", UploadCommitterFactory.class.getName());
      }
      // This connector reads only file:// URLs, to measure the job without a network.
      case "local" -> {}
      case "gcs" -> {
        // Google's connector reads only gs:// URLs.
        conf.set("fs.gs.impl", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem");
      }
      case "s3a", "s3a-tuned", "s3a-analytics" -> {
        if (connector.endsWith("analytics")) {
          conf.set("fs.s3a.input.stream.type", "analytics");
        }
        conf.set("mapreduce.outputcommitter.factory.scheme.s3a", "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory");
        conf.set("fs.s3a.committer.name", "magic");
        if (connector.endsWith("tuned")) {
          conf.setInt("fs.s3a.connection.maximum", 500);
          conf.setInt("fs.s3a.threads.max", 256);
          conf.setInt("fs.s3a.executor.capacity", 64);
          conf.setInt("fs.s3a.committer.threads", 64);
          conf.setInt("fs.s3a.bulk.delete.page.size", 1000);
          conf.setBoolean("fs.s3a.create.performance", true);
        }
      }
      default -> throw new IllegalArgumentException("unknown connector: " + connector);
    }
    return conf;
  }

  /** Returns the bytes that live threads have allocated, without those of ended threads. */
  private static long allocated() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long sum = 0;
    for (long bytes : threads.getThreadAllocatedBytes(threads.getAllThreadIds())) {
      sum += Math.max(0, bytes);
    }
    return sum;
  }

  private static String json(Map<String, Object> told) {
    StringBuilder line = new StringBuilder("{");
    told.forEach((name, value) -> {
      line.append(line.length() == 1 ? "" : ", ").append('"').append(name).append("\": ");
      line.append(value instanceof Double number ? String.format(Locale.ROOT, "%.4f", number)
          : value instanceof String text ? '"' + text.replace("\\", "\\\\").replace("\"", "'").replace("\n", " ") + '"' : value);
    });
    return line.append("}").toString();
  }
}
