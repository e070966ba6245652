package dev.laneway.benches;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Reads 500 files of 20 kB with 32 threads. */
final class Small {
  private static final int THREADS = 32;
  private static final int FILES = 500;
  private static final int BYTES = 20_000;

  private Small() {}

  static Map<String, Object> write(FileSystem files, Path place) throws IOException {
    Threads.run(THREADS, FILES, number -> {
      try (FSDataOutputStream out = files.create(file(place, number), true)) {
        out.write(new byte[BYTES]);
      }
    });
    return Map.of();
  }

  static Map<String, Object> read(FileSystem files, Path place) throws IOException {
    LongAdder bytes = new LongAdder();
    Threads.run(THREADS, FILES, number -> {
      try (FSDataInputStream in = files.open(file(place, number))) {
        bytes.add(in.readAllBytes().length);
      }
    });
    return Map.of("ok", bytes.sum() == (long) FILES * BYTES);
  }

  private static Path file(Path place, int number) {
    return new Path(place, "small-" + number);
  }
}
