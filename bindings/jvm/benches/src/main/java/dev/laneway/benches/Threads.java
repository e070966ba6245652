package dev.laneway.benches;

import java.io.IOException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** Does numbered work on a fixed number of threads. */
final class Threads {
  /** Work on an item with a number. */
  interface Work {
    void on(int number) throws IOException;
  }

  private Threads() {}

  /** Does the work for each number below {@code count}. A thread takes the next number when it is done with one. */
  static void run(int threads, int count, Work work) throws IOException {
    AtomicInteger next = new AtomicInteger();
    Queue<IOException> failures = new ConcurrentLinkedQueue<>();
    CountDownLatch left = new CountDownLatch(threads);
    for (int i = 0; i < threads; i++) {
      new Thread(() -> {
        try {
          for (int number = next.getAndIncrement(); number < count; number = next.getAndIncrement()) {
            work.on(number);
          }
        } catch (IOException | RuntimeException failed) {
          failures.add(failed instanceof IOException known ? known : new IOException(failed));
        }
        left.countDown();
      }).start();
    }
    try {
      left.await();
    } catch (InterruptedException interrupted) {
      throw new IOException(interrupted);
    }
    if (!failures.isEmpty()) {
      throw failures.peek();
    }
  }
}
