package dev.laneway.iceberg;

import java.util.Map;
import org.apache.iceberg.hadoop.HadoopMetricsContext;
import org.apache.iceberg.io.FileIOMetricsContext;
import org.apache.iceberg.metrics.Counter;
import org.apache.iceberg.metrics.MetricsContext;
import org.apache.iceberg.metrics.MetricsContext.Unit;

/**
 * Where what is read and written is counted: with Hadoop's statistics of the thread where Hadoop is there, from which Spark takes the bytes of its tasks, as
 * Iceberg's own FileIOs do.
 */
final class FileMetrics {
  private final Counter readBytes;
  private final Counter readOperations;
  private final Counter writeBytes;
  private final Counter writeOperations;

  private FileMetrics(MetricsContext context) {
    readBytes = context.counter(FileIOMetricsContext.READ_BYTES, Unit.BYTES);
    readOperations = context.counter(FileIOMetricsContext.READ_OPERATIONS, Unit.COUNT);
    writeBytes = context.counter(FileIOMetricsContext.WRITE_BYTES, Unit.BYTES);
    writeOperations = context.counter(FileIOMetricsContext.WRITE_OPERATIONS, Unit.COUNT);
  }

  /** {@code name} is what the counts stand under, unless the properties say another. */
  static FileMetrics of(String name, Map<String, String> properties) {
    try {
      MetricsContext context = new HadoopMetricsContext(name);
      context.initialize(properties);
      return new FileMetrics(context);
    } catch (LinkageError withoutHadoop) {
      return new FileMetrics(MetricsContext.nullMetrics());
    }
  }

  void read(long bytes) {
    readBytes.increment(bytes);
    readOperations.increment();
  }

  void wrote(long bytes) {
    writeBytes.increment(bytes);
    writeOperations.increment();
  }
}
