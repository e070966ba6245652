package dev.laneway;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;

/** Ranges of a reader that are read together. */
final class RangesCall extends Call<Void> {
  /** Where bytes are copied and futures completed: what depends on these may block. */
  private static final Executor COMPLETING = ForkJoinPool.commonPool();

  private final List<OneRange> futures = new ArrayList<>();
  private final AtomicInteger wanted;

  RangesCall(Handle reader, List<Range> ranges, IntFunction<ByteBuffer> allocate) {
    super(answer -> null, reader);
    for (Range range : ranges) {
      ByteBuffer buffer = allocate.apply(range.length());
      if (buffer.remaining() < range.length()) {
        throw new IllegalArgumentException(
            "a buffer of " + buffer.remaining() + " bytes was made for " + range.length());
      }
      futures.add(new OneRange(buffer, range.length()));
    }
    wanted = new AtomicInteger(futures.size());
    // What has not come by the end has failed with it.
    whenComplete(
        (done, failure) -> {
          Throwable why = failure;
          if (why == null) {
            why = new LanewayException(ErrorKind.INTERNAL, "a range has not come");
          }
          for (OneRange range : futures) {
            range.failed(why);
          }
        });
  }

  List<? extends CompletableFuture<ByteBuffer>> futures() {
    return futures;
  }

  /** A range is here. Runs on the queue's thread, which hears of the call's end later. */
  void came(int at, Body body) {
    futures.get(at).has(body);
  }

  private final class OneRange extends CompletableFuture<ByteBuffer> {
    private final ByteBuffer buffer;
    private final int length;

    /** Set while bytes are here that were not copied yet. */
    private boolean isHere;

    OneRange(ByteBuffer buffer, int length) {
      this.buffer = buffer;
      this.length = length;
    }

    void has(Body body) {
      synchronized (this) {
        isHere = true;
      }
      COMPLETING.execute(
          () -> {
            boolean isCopied = false;
            // A cancel waits for the copy, or comes before it.
            synchronized (this) {
              try (body) {
                if (!isDone()) {
                  ByteBuffer into = buffer.duplicate();
                  into.limit(into.position() + length);
                  isCopied = body.copyTo(into) == length;
                }
              }
            }
            if (isCopied) {
              ByteBuffer whole = buffer;
              whole.limit(whole.position() + length);
              super.complete(whole);
            } else {
              super.completeExceptionally(
                  new LanewayException(ErrorKind.INTERNAL, "a range came with another length"));
            }
          });
    }

    void failed(Throwable why) {
      synchronized (this) {
        if (isHere) {
          return;
        }
      }
      super.completeExceptionally(why);
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      boolean isCancelled;
      synchronized (this) {
        isCancelled = super.cancel(mayInterruptIfRunning);
      }
      if (isCancelled && wanted.decrementAndGet() == 0) {
        giveUp();
      }
      return isCancelled;
    }

    @Override
    public boolean completeExceptionally(Throwable failure) {
      boolean isCompleted;
      synchronized (this) {
        isCompleted = super.completeExceptionally(failure);
      }
      if (isCompleted && wanted.decrementAndGet() == 0) {
        giveUp();
      }
      return isCompleted;
    }
  }
}
