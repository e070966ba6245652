package dev.laneway.benches;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;

/** Reads or writes several files of 64 MiB at once, and reports the most memory that the process had outside its heap. */
final class Memory {
  private static final int BYTES = 64 << 20;

  private Memory() {}

  static Map<String, Object> write(FileSystem files, org.apache.hadoop.fs.Path place, int count) throws IOException {
    byte[] block = new byte[1 << 20];
    Threads.run(count, count, number -> {
      try (FSDataOutputStream out = files.create(file(place, number), true)) {
        for (int written = 0; written < BYTES; written += block.length) {
          out.write(block);
        }
      }
    });
    return Map.of("outside_heap_mib", outsideHeap());
  }

  static Map<String, Object> read(FileSystem files, org.apache.hadoop.fs.Path place, int count) throws IOException {
    Threads.run(count, count, number -> {
      byte[] block = new byte[1 << 20];
      try (FSDataInputStream in = files.open(file(place, number))) {
        for (int read = in.read(block); read >= 0; read = in.read(block)) {
          // The bytes themselves don't matter.
        }
      }
    });
    return Map.of("outside_heap_mib", outsideHeap());
  }

  /**
   * Returns the process's peak memory without its heap. With {@code -Xms} equal to {@code -Xmx} and {@code
   * -XX:+AlwaysPreTouch}, the whole heap is in memory from the start.
   */
  private static double outsideHeap() throws IOException {
    long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getCommitted();
    long peak = Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("VmHWM:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
        .findFirst()
        .orElseThrow();
    return (peak - heap) / 1048576.0;
  }

  private static org.apache.hadoop.fs.Path file(org.apache.hadoop.fs.Path place, int number) {
    return new org.apache.hadoop.fs.Path(place, "large-" + number);
  }
}
