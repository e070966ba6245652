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
 * A call of the engine's under way. It is a future that ends the call when it is cancelled, or completed by anybody else, and returns from that only once the
 * engine uses no buffer of the call's any more.
 */
class Call<T> extends CompletableFuture<T> {
  /** Makes the result of an answer. */
  interface Reading<T> {
    T of(Unpacked answer);

    /** What becomes of an answer that nobody wants any more: no buffer is touched. */
    default void unwanted(Unpacked answer) {
      if (of(answer) instanceof AutoCloseable unwanted) {
        closed(unwanted);
      }
    }
  }

  /**
   * Where futures are completed: what depends on them may block, which the queue's thread must not. As {@link CompletableFuture}'s own, a common pool of
   * one thread, which may be none, doesn't do.
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

  /** What has to stay until the call has ended: buffers that are lent, and whose handle it uses. */
  @SuppressWarnings("unused")
  private final Object[] kept;

  private final Throwable begun = Handle.here();
  private final CountDownLatch ended = new CountDownLatch(1);
  private long number;
  private boolean isBlocking = true;

  /** Set once somebody else than the engine ends the call: its answer is read no more. */
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

  /** This, for somebody who waits otherwise than by {@link #await}. */
  final synchronized CompletableFuture<T> asFuture() {
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
    synchronized (this) {
      if (isBlocking) {
        // Nothing can depend on it: it has not been handed out, nor will be before this is over.
        finish(answer);
        ended.countDown();
        return;
      }
    }
    ended.countDown();
    completing(() -> finish(answer));
  }

  /** Completes where what depends on it may block, or here where there is no thread for it: late is better than never. */
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
    // Who gives it up waits until its buffers are filled, or comes before.
    synchronized (this) {
      try {
        boolean isDone = answer.flag();
        if (isGivenUp) {
          // Who gave it up says how it has ended.
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
      EngineLog.warn("what nobody wanted could not be closed", failure);
    }
  }

  /** Ends the call, and waits until nothing is lent to it any more, which an interrupt doesn't cut short. */
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

  /** The same where what comes all the same is not wanted. */
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

  /** Ends a future that is not done by then. Ending one waits for its buffers, which the one thread of all the JVM's timeouts must not. */
  static void after(long timeout, TimeUnit unit, CompletableFuture<?> future, Runnable end) {
    CompletableFuture<Void> timer = new CompletableFuture<Void>().completeOnTimeout(null, timeout, unit);
    timer.thenRunAsync(end, COMPLETING);
    future.whenComplete((done, failure) -> timer.cancel(false));
  }
}
