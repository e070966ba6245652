package dev.laneway;

import java.util.List;
import java.util.Map;

/** The totals of a job. */
public final class Summary {
  private final Map<String, Long> counts;
  private final List<LanewayException> failures;
  private final List<String> warnings;

  Summary(Map<String, Long> counts, List<LanewayException> failures, List<String> warnings) {
    this.counts = counts;
    this.failures = List.copyOf(failures);
    this.warnings = List.copyOf(warnings);
  }

  /** Returns the number of items that were done. In a dry run, it is the number of planned items. */
  public long files() {
    return count("files");
  }

  /** Returns the number of items that failed. */
  public long failed() {
    return count("failed");
  }

  /** Returns the number of items that were left as they were. */
  public long skipped() {
    return count("skipped");
  }

  /** Returns the number of items that a sync removed at its destination. */
  public long removed() {
    return count("removed");
  }

  /** Returns the number of items that a sync found equal on both sides. */
  public long unchanged() {
    return count("unchanged");
  }

  /** Returns the bytes of the items that were done. */
  public long bytes() {
    return count("bytes");
  }

  /** Returns the number of requests that the job sent, counting every attempt. */
  public long requests() {
    return count("requests");
  }

  /** Returns the number of connections that the job opened. */
  public long connections() {
    return count("connections");
  }

  /** Returns the number of items that were found but not done, because the job was cancelled or stopped first. */
  public long notDone() {
    return count("not_done");
  }

  /** Returns the time from the job's start to its end, in milliseconds. */
  public long milliseconds() {
    return count("milliseconds");
  }

  /** Returns whether the job was cancelled. */
  public boolean isInterrupted() {
    return count("interrupted") != 0;
  }

  /** Returns whether the job stopped early, because of a failure that every other item would have had too. */
  public boolean isStopped() {
    return count("stopped") != 0;
  }

  /** Returns a count by its name in the JSON records of the program {@code laneway}, or 0 for an unknown name. */
  public long count(String name) {
    return counts.getOrDefault(name, 0L);
  }

  /** Returns the failures, at most the first 1000. */
  public List<LanewayException> failures() {
    return failures;
  }

  /**
   * Returns the warnings, at most the first 1000. A warning says that the job left out something that the caller may
   * have wanted, or did something differently than requested.
   */
  public List<String> warnings() {
    return warnings;
  }

  /**
   * Returns this summary if no item failed and the job was completed.
   *
   * @throws LanewayException the first failure, with the others as suppressed exceptions
   */
  public Summary orThrow() throws LanewayException {
    if (failures.isEmpty() && failed() == 0 && !isInterrupted() && !isStopped()) {
      return this;
    }
    if (failures.isEmpty()) {
      throw new LanewayException(ErrorKind.CANCELLED, "the job was cancelled before it was done");
    }
    LanewayException first = failures.get(0);
    for (LanewayException other : failures.subList(1, failures.size())) {
      if (first.getSuppressed().length < failures.size() - 1) {
        first.addSuppressed(other);
      }
    }
    throw first;
  }

  @Override
  public String toString() {
    return "Summary" + counts;
  }
}
