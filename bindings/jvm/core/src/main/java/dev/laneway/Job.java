package dev.laneway;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A running job: a copy, a sync or a removal. A job that is closed before its end is cancelled: it begins no more
 * items, abandons running transfers, and cleans up.
 */
public final class Job implements AutoCloseable {
  /** The maximum number of failures, and also of warnings, that are kept. */
  private static final int KEPT_MAX = 1000;

  /** The minimum time between two calls of the listener, except for the last call. */
  private static final long TELL_NS = TimeUnit.MILLISECONDS.toNanos(100);

  private final Handle handle;
  private final Laneway laneway;
  private final Consumer<Progress> progress;
  private final List<LanewayException> failures = new ArrayList<>();
  private final List<String> warnings = new ArrayList<>();
  private final CompletableFuture<Summary> summary = new CompletableFuture<>();
  private volatile Progress last = new Progress(0, 0, 0, 0, false);

  /** The time of the listener's last call. */
  private volatile long toldAt = System.nanoTime() - TELL_NS;

  private volatile boolean hasListenerFailed;

  private Job(Laneway laneway, Handle handle, Consumer<Progress> progress) {
    this.laneway = laneway;
    this.handle = handle;
    this.progress = progress;
  }

  static Job begin(
      Laneway laneway, Handle client, String verb, List<String> sources, String destination, JobOptions options)
      throws LanewayException {
    Packed packed = new Packed().text(verb).number(sources.size());
    sources.forEach(source -> packed.argument("source", source));
    packed.maybeText(destination);
    Objects.requireNonNull(options, "options").write(packed);
    long number = Engine.now(Native.job(client.number(), packed.bytes())).number();
    Job job = new Job(laneway, Handle.watched(number, "a job"), options.progress());
    job.next();
    return job;
  }

  /**
   * Returns the totals of the job, once it has ended. Failed items don't make this future fail: see {@link
   * Summary#orThrow}.
   */
  public CompletableFuture<Summary> summary() {
    return summary.copy();
  }

  /** Waits for the job's end. An interrupt cancels the job, and this waits until it has cleaned up. */
  public Summary join() throws IOException {
    try {
      return summary.get();
    } catch (InterruptedException interrupted) {
      cancel();
      summary.exceptionally(failure -> null).join();
      Thread.currentThread().interrupt();
      InterruptedIOException failure = new InterruptedIOException("the job was interrupted");
      failure.initCause(interrupted);
      throw failure;
    } catch (ExecutionException failed) {
      throw new IOException(failed.getCause());
    }
  }

  /** Returns the progress of the job so far, or at its end. */
  public Progress progress() {
    try {
      last = Progress.read(Engine.now(Native.progress(handle.number())));
    } catch (LanewayException ended) {
      // The job has ended, and its handle is closed. `last` was read before that.
    }
    return last;
  }

  /**
   * Cancels the job: it begins no more items, abandons running transfers, and cleans up. After that, the future of
   * {@link #summary} completes.
   */
  public void cancel() {
    if (!summary.isDone()) {
      Native.cancelJob(handle.number());
    }
  }

  /** Cancels the job unless it has ended, and waits until it has cleaned up. */
  @Override
  public void close() {
    cancel();
    summary.exceptionally(failure -> null).join();
  }

  @Override
  public String toString() {
    return "Job[" + (summary.isDone() ? "ended" : "under way") + "]";
  }

  /** Reads the job's events, repeatedly until its end. */
  private void next() {
    Engine.begin(Native.JOB_EVENTS, handle, new Packed(), this::happened, this, laneway)
        .asFuture()
        .whenComplete(
            (ended, failure) -> {
              Progress now = progress();
              boolean isAtEnd = failure != null || ended != null;
              if (progress != null && (isAtEnd || System.nanoTime() - toldAt >= TELL_NS)) {
                toldAt = System.nanoTime();
                tell(now);
              }
              if (failure != null) {
                handle.close();
                summary.completeExceptionally(failure);
              } else if (ended == null) {
                next();
              } else {
                handle.close();
                summary.complete(ended);
              }
            });
  }

  private void tell(Progress now) {
    try {
      progress.accept(now);
    } catch (RuntimeException failure) {
      if (!hasListenerFailed) {
        hasListenerFailed = true;
        EngineLog.warn("the listener of a job's progress has failed; further failures aren't logged", failure);
      }
    }
  }

  private Summary happened(Unpacked answer) {
    for (int left = answer.count(); left > 0; left--) {
      LanewayException failure = answer.failure();
      if (failures.size() < KEPT_MAX) {
        failures.add(failure);
      }
    }
    for (int left = answer.count(); left > 0; left--) {
      String warning = OptionNames.inJava(answer.text());
      if (warnings.size() < KEPT_MAX) {
        warnings.add(warning);
      }
    }
    if (!answer.flag()) {
      return null;
    }
    return new Summary(answer.numbers(), failures, warnings);
  }
}
