package dev.laneway;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;

/**
 * A call of the engine's under way. It is a future that ends the call when it is cancelled, or completed by anybody else, and returns from that only once the
 * engine uses no buffer of the call's any more.
 */
class Call<T> extends CompletableFuture<T> {
  /** Makes the result of an answer. */
  interface Reading<T> {
    T of(Unpacked answer);
  }

  /** Where futures are completed: what depends on them may block, which the queue's thread must not. */
  private static final Executor COMPLETING = ForkJoinPool.commonPool();

  private final Reading<T> reading;

  /** What has to stay until the call has ended: buffers that are lent, and whose handle it uses. */
  @SuppressWarnings("unused")
  private final Object[] kept;

  private final CountDownLatch ended = new CountDownLatch(1);
  private long number;
  private volatile boolean isBlocking = true;

  Call(Reading<T> reading, Object... kept) {
    this.reading = reading;
    this.kept = kept;
  }

  final void begun(long number) {
    this.number = number;
  }

  final long number() {
    return number;
  }

  /** This, for somebody who waits otherwise than by {@link #await}. */
  final CompletableFuture<T> asFuture() {
    isBlocking = false;
    return this;
  }

  /** Waits for the result. An interrupt ends the call; where it was done all the same, its result is given and the thread stays interrupted. */
  final T await() throws IOException {
    try {
      return get();
    } catch (InterruptedException interrupted) {
      giveUp();
      Thread.currentThread().interrupt();
      if (isDone() && !isCompletedExceptionally()) {
        return join();
      }
      InterruptedIOException failure = new InterruptedIOException("the call was interrupted");
      failure.initCause(interrupted);
      throw failure;
    } catch (ExecutionException failed) {
      Throwable cause = failed.getCause();
      if (cause instanceof LanewayException failure) {
        // Nobody else has it: it tells of the thread that waited, and not of the one that heard of it.
        failure.fillInStackTrace();
        throw failure;
      }
      throw new IOException(cause);
    }
  }

  /** What the queue says: nothing is lent to the call any more. Runs on the queue's thread. */
  final void ended(Unpacked answer) {
    if (isBlocking) {
      finish(answer);
      ended.countDown();
    } else {
      ended.countDown();
      COMPLETING.execute(() -> finish(answer));
    }
  }

  private void finish(Unpacked answer) {
    T result;
    try {
      if (!answer.flag()) {
        super.completeExceptionally(answer.failure());
        return;
      }
      result = reading.of(answer);
    } catch (Throwable failure) {
      super.completeExceptionally(failure);
      return;
    }
    if (!super.complete(result) && result instanceof AutoCloseable unwanted) {
      // Somebody has given the call up meanwhile.
      closed(unwanted);
    }
  }

  private static void closed(AutoCloseable unwanted) {
    try {
      unwanted.close();
    } catch (Exception failure) {
      EngineLog.warn("what nobody wanted could not be closed", failure);
    }
  }

  /** Ends the call, and waits until nothing is lent to it any more, which an interrupt doesn't cut short. */
  final void giveUp() {
    Engine.cancel(this);
    boolean wasInterrupted = false;
    while (true) {
      try {
        ended.await();
        break;
      } catch (InterruptedException interrupted) {
        wasInterrupted = true;
      }
    }
    if (wasInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    if (!isDone()) {
      giveUp();
    }
    return super.cancel(mayInterruptIfRunning);
  }

  @Override
  public boolean completeExceptionally(Throwable failure) {
    if (!isDone()) {
      giveUp();
    }
    return super.completeExceptionally(failure);
  }

  @Override
  public boolean complete(T value) {
    if (!isDone()) {
      giveUp();
    }
    return super.complete(value);
  }
}
