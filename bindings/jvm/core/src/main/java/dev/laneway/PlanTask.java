package dev.laneway;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/** A running action on a plan. */
final class PlanTask {
  /** The end of an action: its result, and the number of the plan that it has opened, or 0. */
  record Ended(Object value, long plan) {}

  /** Events of an action since the last call. */
  private record Events(
      List<Plan.Row> rows, List<String> warnings, Ended ended, LanewayException failure) {
    boolean isLast() {
      return ended != null || failure != null;
    }
  }

  private final Handle handle;

  private PlanTask(Handle handle) {
    this.handle = handle;
  }

  /**
   * Carries an action out, and waits for its end. {@code of} is the plan that it concerns, or the client that makes or
   * opens one. If the thread is interrupted, the action is stopped. If the action holds a lease, this waits until the
   * lease was given up.
   */
  static Ended run(Handle of, String verb, PlanOptions options, boolean hasLease) throws IOException {
    Packed packed = new Packed().text(verb).pairs(Objects.requireNonNull(options, "options").wishes());
    try {
      long number = Engine.now(Native.plan(of.number(), packed.bytes())).number();
      try (Handle handle = Handle.quiet(number)) {
        return new PlanTask(handle).end(options.onRow(), hasLease);
      }
    } catch (LanewayException failure) {
      throw named(failure);
    }
  }

  private Ended end(Consumer<Plan.Row> onRow, boolean hasLease) throws IOException {
    try {
      while (true) {
        Events events = next();
        events.warnings().forEach(EngineLog::warn);
        events.rows().forEach(onRow);
        if (events.failure() != null) {
          throw events.failure();
        }
        if (events.ended() != null) {
          return events.ended();
        }
      }
    } catch (InterruptedIOException | RuntimeException | Error failure) {
      stop(hasLease);
      throw failure;
    }
  }

  /** Stops the action, and waits for its end if it holds a lease. Keeps the thread's interrupt flag. */
  private void stop(boolean hasLease) throws IOException {
    Native.stopPlan(handle.number());
    boolean isInterrupted = hasLease && Thread.interrupted();
    try {
      while (hasLease && !next().isLast()) {
        // The events before the end no longer matter.
      }
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private Events next() throws IOException {
    return Engine.begin(Native.PLAN_EVENTS, handle, new Packed(), PlanTask::read).await();
  }

  private static Events read(Unpacked answer) {
    List<Plan.Row> rows = new ArrayList<>();
    for (int left = answer.count(); left > 0; left--) {
      rows.add(Plan.Row.read((Map<?, ?>) answer.value()));
    }
    List<String> warnings = new ArrayList<>();
    for (int left = answer.count(); left > 0; left--) {
      warnings.add(OptionNames.inJava(answer.text()));
    }
    if (!answer.flag()) {
      return new Events(rows, warnings, null, null);
    }
    return answer.flag()
        ? new Events(rows, warnings, new Ended(answer.value(), answer.number()), null)
        : new Events(rows, warnings, null, answer.failure());
  }

  /** Returns the failure with the names of {@link PlanOptions}, whose setters are called as those of jobs. */
  private static LanewayException named(LanewayException failure) {
    LanewayException named =
        new LanewayException(
            failure.kind(),
            failure.getMessage().replace("JobOptions.", "PlanOptions."),
            failure.url(),
            failure.status(),
            failure.serviceCode(),
            failure.attempts(),
            failure.isRetryable());
    for (Throwable suppressed : failure.getSuppressed()) {
      named.addSuppressed(suppressed);
    }
    return named;
  }
}
