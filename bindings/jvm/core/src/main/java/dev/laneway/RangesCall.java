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

/** Ranges of a reader that are read together. */
final class RangesCall extends Call<Void> {
  private final List<OneRange> futures = new ArrayList<>();
  private final AtomicInteger wanted;

  /** True if the engine itself writes to the buffers. */
  private final boolean isLent;

  RangesCall(Handle reader, List<Range> ranges, IntFunction<ByteBuffer> allocate) {
    super(answer -> null, reader);
    for (Range range : ranges) {
      ByteBuffer buffer = allocate.apply(range.length());
      if (buffer.remaining() < range.length()) {
        throw new IllegalArgumentException(
            "a buffer of " + buffer.remaining() + " bytes was made for " + range.length());
      }
      futures.add(new OneRange(futures.size(), buffer, range.length()));
    }
    isLent = futures.stream().allMatch(range -> range.buffer.isDirect() && !range.buffer.isReadOnly());
    wanted = new AtomicInteger(futures.size());
    asFuture();
    // Ranges that haven't arrived when the call ends fail with it.
    whenComplete(
        (done, failure) -> {
          Throwable why =
              failure == null ? new LanewayException(ErrorKind.INTERNAL, "a range has not come") : failure;
          futures.forEach(range -> range.failed(why));
        });
  }

  List<? extends CompletableFuture<ByteBuffer>> futures() {
    return futures;
  }

  boolean isLent() {
    return isLent;
  }

  /** Returns the buffers that are lent. */
  ByteBuffer[] buffers() {
    return futures.stream().map(range -> range.buffer).toArray(ByteBuffer[]::new);
  }

  /** Returns each range's place in its buffer, and its length. */
  int[] parts() {
    return futures.stream().flatMapToInt(range -> IntStream.of(range.buffer.position(), range.length)).toArray();
  }

  /** Ends the call. Once this returns, bytes that are here already are not copied any more. */
  @Override
  void giveUp() {
    super.giveUp();
    giveUpCopies();
  }

  /** Abandons copies. Once this returns, bytes that are here already are not copied any more. */
  void giveUpCopies() {
    futures.forEach(OneRange::giveUp);
  }

  /** Handles a range that is here. Runs on the queue's thread, which receives the call's end later. */
  void came(int at, Body body) {
    futures.get(at).has(body);
  }

  /** Handles a range that the engine wrote to its buffer, with this number of bytes. Runs on the queue's thread too. */
  void filled(int at, int bytes) {
    futures.get(at).isFilled(bytes);
  }

  private final class OneRange extends CompletableFuture<ByteBuffer> {
    private final int place;
    private final ByteBuffer buffer;
    private final int length;

    /** Set once the bytes are here. They are copied after that. */
    private boolean isHere;

    /** Set once they must not be copied any more. */
    private boolean isGivenUp;

    /** Set once this range no longer counts in {@code wanted}. */
    private boolean isCounted;

    /** Set once a caller ends this range. The caller's outcome then holds, even if the whole call ends before it. */
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

    /** Ends the range once its bytes are in the buffer. {@code landing} puts them there, and returns their number. */
    private void landed(Body body, IntSupplier landing) {
      synchronized (this) {
        isHere = true;
      }
      completing(
          () -> {
            Throwable failure = null;
            // Giving up waits for the copy, or comes before it.
            synchronized (this) {
              try (body) {
                if (isGivenUp || isDone()) {
                  failure = new LanewayException(ErrorKind.CANCELLED, "cancelled");
                } else if (landing.getAsInt() == length) {
                  buffer.limit(buffer.position() + length);
                } else {
                  failure = new LanewayException(ErrorKind.INTERNAL, "a range came with another length");
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

    /** Makes the engine stop writing to the lent buffer. */
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

    /** Ends the call if nobody waits for any of its ranges. */
    private boolean unwanted(boolean isEnded) {
      boolean isLast;
      synchronized (this) {
        // A range that is here has been counted, or will be.
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
