package dev.laneway.benches;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.LongAdder;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Reads large objects, and small objects that come after them in the queue. Either 50 threads read the objects, or all
 * are read at once, with a future for each.
 */
final class Mixed {
  private static final int THREADS = 50;

  private final FileSystem files;
  private final Path place;
  private final Queue<String> names = new ConcurrentLinkedQueue<>();
  private final Queue<Double> times = new ConcurrentLinkedQueue<>();
  private final Queue<String> failures = new ConcurrentLinkedQueue<>();
  private final LongAdder bytes = new LongAdder();

  private Mixed(FileSystem files, Path place) {
    this.files = files;
    this.place = place;
  }

  /** Reads four objects of 256 MiB and 200 small ones. Each thread takes the next object when it has read one. */
  static Map<String, Object> byThreads(FileSystem files, Path place) throws InterruptedException {
    Mixed mixed = new Mixed(files, place);
    mixed.name("L%d", 4);
    mixed.name("s%03d", 200);
    CountDownLatch left = new CountDownLatch(THREADS);
    long begun = System.nanoTime();
    for (int i = 0; i < THREADS; i++) {
      new Thread(() -> {
        for (String name = mixed.names.poll(); name != null; name = mixed.names.poll()) {
          try (FSDataInputStream in = Whole.open(files, new Path(place, name))) {
            mixed.read(name, in, begun);
          } catch (Throwable failed) {
            mixed.failures.add(failed.toString());
          }
        }
        left.countDown();
      }).start();
    }
    left.await();
    return mixed.told(204);
  }

  /** Reads 64 objects of 64 MiB and 500 small ones, all at once. */
  static Map<String, Object> byFutures(FileSystem files, Path place) {
    Mixed mixed = new Mixed(files, place);
    mixed.name("L%02d", 64);
    mixed.name("s%03d", 500);
    ExecutorService threads = Executors.newCachedThreadPool();
    long begun = System.nanoTime();
    CompletableFuture<?>[] reads = mixed.names.stream()
        .map(name -> CompletableFuture.runAsync(() -> {
          try (FSDataInputStream in = Whole.open(files, new Path(place, name))) {
            mixed.read(name, in, begun);
          } catch (Throwable failed) {
            mixed.failures.add(failed.toString());
          }
        }, threads))
        .toArray(CompletableFuture[]::new);
    CompletableFuture.allOf(reads).join();
    threads.shutdown();
    return mixed.told(564);
  }

  private void name(String pattern, int count) {
    for (int i = 0; i < count; i++) {
      names.add(String.format(Locale.ROOT, pattern, i));
    }
  }

  private void read(String name, FSDataInputStream in, long begun) throws IOException {
    byte[] buffer = new byte[256 << 10];
    for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
      bytes.add(read);
    }
    times.add((name.startsWith("s") ? 1 : -1) * (System.nanoTime() - begun) / 1e9);
  }

  private Map<String, Object> told(int all) {
    List<Double> smallOnes = new ArrayList<>(times.stream().filter(time -> time > 0).sorted().toList());
    return Map.of(
        "small_p50_s", smallOnes.isEmpty() ? -1.0 : smallOnes.get(smallOnes.size() / 2),
        "small_p99_s", smallOnes.isEmpty() ? -1.0 : smallOnes.get((int) (smallOnes.size() * .99)),
        "bytes", bytes.sum(),
        "ok", times.size() == all && bytes.sum() > 4L << 28,
        "note", failures.isEmpty() ? "" : failures.size() + " failed: " + failures.peek());
  }
}
