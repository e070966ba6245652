package dev.laneway;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** A call that reads several ranges of an object together, with a future for each. */
final class RangesCall extends Call<Void> {
  private final List<OneRange> futures = new ArrayList<>();

  /** The number of ranges that have neither arrived nor been ended by the caller. */
  private final AtomicInteger wanted;

  /** True if the engine itself writes to the buffers, all of which are direct. Otherwise the bytes are copied here. */
  private final boolean isLent;

  RangesCall(Handle reader, List<Range> ranges, IntFunction<ByteBuffer> allocate) {
    super(answer -> null, reader);
    for (Range range : ranges) {
      ByteBuffer buffer = allocate.apply(range.length());
      if (buffer.remaining() < range.length()) {
        throw new IllegalArgumentException(
            "a range of " + range.length() + " bytes got a buffer of only " + buffer.remaining());
      }
      futures.add(new OneRange(futures.size(), buffer, range.length()));
    }
    isLent = futures.stream().allMatch(range -> range.buffer.isDirect() && !range.buffer.isReadOnly());
    wanted = new AtomicInteger(futures.size());
    asFuture();
    // When the call ends, the ranges that haven't arrived fail with the call's failure.
    whenComplete(
        (done, failure) -> {
          Throwable why =
              failure == null ? new LanewayException(ErrorKind.INTERNAL, "the call ended without this range") : failure;
          futures.forEach(range -> range.failed(why));
        });
  }

  List<? extends CompletableFuture<ByteBuffer>> futures() {
    return futures;
  }

  boolean isLent() {
    return isLent;
  }

  /** Returns the buffers to which the engine writes. */
  ByteBuffer[] buffers() {
    return futures.stream().map(range -> range.buffer).toArray(ByteBuffer[]::new);
  }

  /** Returns two numbers for each range: its offset in its buffer, and its length. */
  int[] parts() {
    return futures.stream().flatMapToInt(range -> IntStream.of(range.buffer.position(), range.length)).toArray();
  }

  /** Ends the call. Once this returns, bytes that have already arrived are no longer copied to the buffers. */
  @Override
  void giveUp() {
    super.giveUp();
    giveUpCopies();
  }

  /** Abandons copies. Once this returns, bytes that have arrived are no longer copied to the buffers. */
  void giveUpCopies() {
    futures.forEach(OneRange::giveUp);
  }

  /** Handles a range that has arrived. Runs on the thread that reads the queue, before the event of the call's end. */
  void came(int at, Body body) {
    futures.get(at).has(body);
  }

  /**
   * Handles the event that the engine has written this many bytes to a range's buffer. Runs on the thread that reads
   * the queue, too.
   */
  void filled(int at, int bytes) {
    futures.get(at).isFilled(bytes);
  }

  private final class OneRange extends CompletableFuture<ByteBuffer> {
    private final int place;
    private final ByteBuffer buffer;
    private final int length;

    /** Set once the bytes have arrived. They are copied to the buffer after that. */
    private boolean isHere;

    /** Set once the bytes must no longer be copied to the buffer. */
    private boolean isGivenUp;

    /** Set once {@code wanted} no longer counts this range, because it has arrived or was ended. */
    private boolean isCounted;

    /**
     * Set once the caller ends this range, for example by cancelling it. The future then ends as the caller chose, even
     * if the whole call ends first.
     */
    private boolean isEnding;

    OneRange(int place, ByteBuffer buffer, int length) {
      this.place = place;
      this.buffer = buffer;
      this.length = length;
    }

    void has(Body body) {
      landed(
          body,
          () -> {
            ByteBuffer into = buffer.duplicate();
            into.limit(into.position() + length);
            return body.copyTo(into);
          });
    }

    void isFilled(int bytes) {
      landed(Body.NONE, () -> bytes);
    }

    /**
     * Completes the range's future. Before that, {@code landing} puts the bytes into the buffer, and returns their
     * number.
     */
    private void landed(Body body, IntSupplier landing) {
      synchronized (this) {
        isHere = true;
      }
      completing(
          () -> {
            Throwable failure = null;
            // `giveUp` takes this lock too. So it takes effect either before the copy or after it.
            synchronized (this) {
              try (body) {
                if (isGivenUp || isDone()) {
                  failure = new LanewayException(ErrorKind.CANCELLED, "cancelled");
                } else if (landing.getAsInt() == length) {
                  buffer.limit(buffer.position() + length);
                } else {
                  failure = new LanewayException(ErrorKind.INTERNAL, "a range arrived with another length");
                }
              } catch (RuntimeException unfit) {
                // The buffer no longer takes the bytes: its limit was changed, or it is read-only.
                failure = unfit;
              }
            }
            synchronized (this) {
              if (!isCounted) {
                isCounted = true;
                wanted.decrementAndGet();
              }
            }
            if (failure == null) {
              super.complete(buffer);
            } else {
              super.completeExceptionally(failure);
            }
          });
    }

    synchronized void giveUp() {
      isGivenUp = true;
    }

    void failed(Throwable why) {
      synchronized (this) {
        if (isHere || isEnding) {
          return;
        }
      }
      super.completeExceptionally(why);
    }

    /** Makes the engine stop writing to this range's buffer. */
    private void takeBack() {
      synchronized (this) {
        isEnding = true;
      }
      if (isLent && !isDone()) {
        Engine.giveUp(RangesCall.this, place);
      }
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      takeBack();
      boolean isEnded;
      synchronized (this) {
        isEnded = super.cancel(mayInterruptIfRunning);
      }
      return unwanted(isEnded);
    }

    @Override
    public boolean completeExceptionally(Throwable failure) {
      Objects.requireNonNull(failure, "failure");
      takeBack();
      boolean isEnded;
      synchronized (this) {
        isEnded = super.completeExceptionally(failure);
      }
      return unwanted(isEnded);
    }

    @Override
    public boolean complete(ByteBuffer value) {
      takeBack();
      boolean isEnded;
      synchronized (this) {
        isEnded = super.complete(value);
      }
      return unwanted(isEnded);
    }

    // The JDK's own method would end the future while the engine still writes to its buffer.
    @Override
    public CompletableFuture<ByteBuffer> completeAsync(Supplier<? extends ByteBuffer> supplier, Executor executor) {
      executor.execute(
          () -> {
            try {
              complete(supplier.get());
            } catch (Throwable failure) {
              completeExceptionally(failure);
            }
          });
      return this;
    }

    @Override
    public CompletableFuture<ByteBuffer> completeAsync(Supplier<? extends ByteBuffer> supplier) {
      return completeAsync(supplier, defaultExecutor());
    }

    @Override
    public void obtrudeValue(ByteBuffer value) {
      takeBack();
      super.obtrudeValue(value);
    }

    @Override
    public void obtrudeException(Throwable failure) {
      takeBack();
      super.obtrudeException(failure);
    }

    @Override
    public CompletableFuture<ByteBuffer> orTimeout(long timeout, TimeUnit unit) {
      after(timeout, unit, this, () -> completeExceptionally(new TimeoutException()));
      return this;
    }

    @Override
    public CompletableFuture<ByteBuffer> completeOnTimeout(ByteBuffer value, long timeout, TimeUnit unit) {
      after(timeout, unit, this, () -> complete(value));
      return this;
    }

    /** Ends the whole call if the caller has ended the last range that had not arrived. */
    private boolean unwanted(boolean isEnded) {
      boolean isLast;
      synchronized (this) {
        // If the bytes have arrived, `landed` lowers the count.
        boolean counts = isEnded && !isHere && !isCounted;
        isCounted |= counts;
        isLast = counts && wanted.decrementAndGet() == 0;
      }
      if (isLast) {
        RangesCall.this.cancel(true);
      }
      return isEnded;
    }
  }
}
