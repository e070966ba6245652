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
 * A running call of the engine. Cancelling this future ends the call, and so does completing the future in any other
 * way. {@code cancel} and {@code complete} wait until the engine no longer uses the call's buffers.
 */
class Call<T> extends CompletableFuture<T> {
  /** Converts the engine's answer to the result of the call. */
  interface Reading<T> {
    T of(Unpacked answer);

    /**
     * Releases the result of a call that the caller has given up. The implementation must not touch the call's buffers,
     * because the caller may use them again.
     */
    default void unwanted(Unpacked answer) {
      if (of(answer) instanceof AutoCloseable unwanted) {
        closed(unwanted);
      }
    }
  }

  /**
   * Completes futures. Code that depends on a future may block, but the thread that reads the queue must not. As in
   * {@link CompletableFuture}, the common pool isn't used if it has at most one thread.
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

  /**
   * Objects that must not be garbage collected before the call has ended: buffers that the engine uses, and owners of
   * handles.
   */
  @SuppressWarnings("unused")
  private final Object[] kept;

  private final Throwable begun = Handle.here();
  private final CountDownLatch ended = new CountDownLatch(1);
  private long number;
  private boolean isBlocking = true;

  /** Set once the caller ends the call, for example by cancelling it. The engine's answer is then dropped. */
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

  /** Returns this call as a future, for a caller that won't use {@link #await}. */
  final synchronized CompletableFuture<T> asFuture() {
    isBlocking = false;
    return this;
  }

  /**
   * Waits for the result. If the thread is interrupted, this ends the call. If the call has succeeded nevertheless,
   * this returns its result, and the thread's interrupt flag stays set.
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
        // Show where the caller waits, instead of the stack of the queue's thread. No other code holds a reference to
        // this exception, so it is safe to replace its stack trace.
        failure.fillInStackTrace();
        throw failure;
      }
      throw new IOException(cause);
    }
  }

  /**
   * Handles the event that the call has ended. From then on, the engine uses none of the call's buffers. Runs on the
   * thread that reads the queue.
   */
  final void ended(Unpacked answer) {
    synchronized (this) {
      if (isBlocking) {
        // No code depends on the future: it was not handed out, and `asFuture` waits for this lock. So completing it
        // here can't block.
        finish(answer);
        ended.countDown();
        return;
      }
    }
    ended.countDown();
    completing(() -> finish(answer));
  }

  /** Runs the work on a thread that may block, or on this thread if no other can be started. */
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
    // `giveUpForGood` takes this lock too. So it takes effect either before the caller's buffers are filled here, or
    // afterwards.
    synchronized (this) {
      try {
        boolean isDone = answer.flag();
        if (isGivenUp) {
          // The thread that gave up the call completes the future.
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

  /** Cancels the call, and waits until the engine no longer uses its buffers. An interrupt doesn't end this wait. */
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

  /** Does the same as {@link #giveUp}, and makes {@link #finish} drop the answer if it still comes. */
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
   * Runs {@code end} if the future isn't done after the timeout. {@code end} may have to wait until the engine no
   * longer uses the buffers. So it doesn't run on the JVM's only thread for timeouts, which must not block.
   */
  static void after(long timeout, TimeUnit unit, CompletableFuture<?> future, Runnable end) {
    CompletableFuture<Void> timer = new CompletableFuture<Void>().completeOnTimeout(null, timeout, unit);
    timer.thenRunAsync(end, COMPLETING);
    future.whenComplete((done, failure) -> timer.cancel(false));
  }
}
