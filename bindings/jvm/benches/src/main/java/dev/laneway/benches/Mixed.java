package dev.laneway.benches;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Four objects of 256 MiB, and behind them 200 small ones, by 50 threads that read each as a whole. */
final class Mixed {
  private static final int THREADS = 50;

  private Mixed() {}

  static Map<String, Object> read(FileSystem files, Path place, int small) throws InterruptedException {
    Queue<String> names = new ConcurrentLinkedQueue<>();
    for (int i = 0; i < 4; i++) {
      names.add("L" + i);
    }
    for (int i = 0; i < small; i++) {
      names.add(String.format(Locale.ROOT, "s%03d", i));
    }
    int all = names.size();
    Queue<Double> times = new ConcurrentLinkedQueue<>();
    Queue<String> failures = new ConcurrentLinkedQueue<>();
    LongAdder bytes = new LongAdder();
    CountDownLatch left = new CountDownLatch(THREADS);
    long begun = System.nanoTime();
    for (int i = 0; i < THREADS; i++) {
      new Thread(() -> {
        byte[] buffer = new byte[1 << 20];
        for (String name = names.poll(); name != null; name = names.poll()) {
          try (FSDataInputStream in = Whole.open(files, new Path(place, name))) {
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
              bytes.add(read);
            }
            times.add((name.startsWith("s") ? 1 : -1) * (System.nanoTime() - begun) / 1e9);
          } catch (Throwable failed) {
            failures.add(failed.toString());
          }
        }
        left.countDown();
      }).start();
    }
    left.await();
    List<Double> smallOnes = new ArrayList<>(times.stream().filter(time -> time > 0).sorted().toList());
    return Map.of(
        "small_p50_s", smallOnes.get(smallOnes.size() / 2),
        "small_p99_s", smallOnes.get((int) (smallOnes.size() * .99)),
        "bytes", bytes.sum(),
        "ok", times.size() == all && bytes.sum() > 4L << 28,
        "note", failures.isEmpty() ? "" : failures.size() + " failed: " + failures.peek());
  }
}
