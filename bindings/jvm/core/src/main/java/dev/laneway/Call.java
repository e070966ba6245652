package dev.laneway;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A running call of the engine. Cancelling this future, or completing it in any other way, ends the call. Both return
 * only once the engine no longer uses the call's buffers.
 */
class Call<T> extends CompletableFuture<T> {
  /** Makes the result of an answer. */
  interface Reading<T> {
    T of(Unpacked answer);

    /** Handles an answer that nobody wants any more. It touches no buffer. */
    default void unwanted(Unpacked answer) {
      if (of(answer) instanceof AutoCloseable unwanted) {
        closed(unwanted);
      }
    }
  }

  /**
   * Completes futures. Their dependents may block, which the queue's thread must not. As with {@link
   * CompletableFuture}, a common pool with at most one thread isn't used.
   */
  static final Executor COMPLETING =
      ForkJoinPool.getCommonPoolParallelism() > 1
          ? ForkJoinPool.commonPool()
          : new ThreadPoolExecutor(
              0,
              Integer.MAX_VALUE,
              1,
              TimeUnit.SECONDS,
              new SynchronousQueue<>(),
              work -> {
                Thread thread = new Thread(null, work, "laneway-completing", 0, false);
                thread.setDaemon(true);
                return thread;
              });

  private final Reading<T> reading;

  /** Objects that must stay alive until the call has ended: lent buffers, and the owners of handles. */
  @SuppressWarnings("unused")
  private final Object[] kept;

  private final Throwable begun = Handle.here();
  private final CountDownLatch ended = new CountDownLatch(1);
  private long number;
  private boolean isBlocking = true;

  /** Set once something other than the engine ends the call. The call's answer is not read then. */
  private boolean isGivenUp;

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

  /** Returns this call for a caller that doesn't wait by {@link #await}. */
  final synchronized CompletableFuture<T> asFuture() {
    isBlocking = false;
    return this;
  }

  /**
   * Waits for the result. An interrupt ends the call. If the call succeeded nevertheless, this returns its result and
   * the thread stays interrupted.
   */
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
        // No other code has the exception, so its trace may show the waiting thread instead of the queue's.
        failure.fillInStackTrace();
        throw failure;
      }
      throw new IOException(cause);
    }
  }

  /** Handles the call's end from the queue: nothing is lent to the call any more. Runs on the queue's thread. */
  final void ended(Unpacked answer) {
    synchronized (this) {
      if (isBlocking) {
        // Nothing depends on the future, because it was not handed out and won't be before this is over.
        finish(answer);
        ended.countDown();
        return;
      }
    }
    ended.countDown();
    completing(() -> finish(answer));
  }

  /** Runs the work on a thread that may block, or on this thread if there is none. */
  static void completing(Runnable work) {
    try {
      COMPLETING.execute(work);
    } catch (RejectedExecutionException | OutOfMemoryError noThread) {
      work.run();
    }
  }

  private void finish(Unpacked answer) {
    T result = null;
    Throwable failure = null;
    // Giving up waits until the buffers are filled, or comes before that.
    synchronized (this) {
      try {
        boolean isDone = answer.flag();
        if (isGivenUp) {
          // The thread that gave it up decides how it ended.
          if (isDone) {
            reading.unwanted(answer);
          }
          return;
        }
        if (isDone) {
          answer.begun(begun);
          result = reading.of(answer);
        } else {
          failure = answer.failure();
        }
      } catch (Throwable unexpected) {
        failure = unexpected;
      }
    }
    if (failure != null) {
      super.completeExceptionally(failure);
    } else if (!super.complete(result) && result instanceof AutoCloseable unwanted) {
      closed(unwanted);
    }
  }

  private static void closed(AutoCloseable unwanted) {
    try {
      unwanted.close();
    } catch (Exception failure) {
      EngineLog.warn("the result of an abandoned call could not be closed", failure);
    }
  }

  /** Ends the call, and waits until nothing is lent to it any more. An interrupt doesn't shorten this. */
  void giveUp() {
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

  /** Does the same, and drops the answer if one comes nevertheless. */
  private void giveUpForGood() {
    if (isDone()) {
      return;
    }
    synchronized (this) {
      isGivenUp = true;
    }
    giveUp();
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    giveUpForGood();
    return super.cancel(mayInterruptIfRunning);
  }

  @Override
  public boolean completeExceptionally(Throwable failure) {
    giveUpForGood();
    return super.completeExceptionally(failure);
  }

  @Override
  public boolean complete(T value) {
    giveUpForGood();
    return super.complete(value);
  }

  @Override
  public CompletableFuture<T> orTimeout(long timeout, TimeUnit unit) {
    after(timeout, unit, this, () -> completeExceptionally(new TimeoutException()));
    return this;
  }

  @Override
  public CompletableFuture<T> completeOnTimeout(T value, long timeout, TimeUnit unit) {
    after(timeout, unit, this, () -> complete(value));
    return this;
  }

  /**
   * Ends a future that isn't done after the timeout. Ending the future waits for its buffers, and must not block the
   * JVM's only thread for timeouts.
   */
  static void after(long timeout, TimeUnit unit, CompletableFuture<?> future, Runnable end) {
    CompletableFuture<Void> timer = new CompletableFuture<Void>().completeOnTimeout(null, timeout, unit);
    timer.thenRunAsync(end, COMPLETING);
    future.whenComplete((done, failure) -> timer.cancel(false));
  }
}
