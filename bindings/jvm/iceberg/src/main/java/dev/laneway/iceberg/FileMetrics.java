package dev.laneway.iceberg;

import java.util.Map;
import org.apache.iceberg.hadoop.HadoopMetricsContext;
import org.apache.iceberg.io.FileIOMetricsContext;
import org.apache.iceberg.metrics.Counter;
import org.apache.iceberg.metrics.MetricsContext;
import org.apache.iceberg.metrics.MetricsContext.Unit;

/**
 * Counts bytes that are read and written. If Hadoop is present, it counts them in Hadoop's statistics of the thread, as
 * Iceberg's own FileIOs do. Spark reads the bytes of its tasks from there.
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

  /** Makes metrics under {@code name}, unless the properties set another name. */
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
