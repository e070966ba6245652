package dev.laneway;

import java.util.List;
import java.util.Map;

/** What a job did. */
public final class Summary {
  private final Map<String, Long> counts;
  private final List<LanewayException> failures;
  private final List<String> warnings;

  Summary(Map<String, Long> counts, List<LanewayException> failures, List<String> warnings) {
    this.counts = counts;
    this.failures = List.copyOf(failures);
    this.warnings = List.copyOf(warnings);
  }

  /** Items that were done (in a dry run: planned). */
  public long files() {
    return count("files");
  }

  /** Items that failed. */
  public long failed() {
    return count("failed");
  }

  /** Items that were left as they were. */
  public long skipped() {
    return count("skipped");
  }

  /** What a sync has removed at its destination. */
  public long removed() {
    return count("removed");
  }

  /** What a sync found to be the same on both sides. */
  public long unchanged() {
    return count("unchanged");
  }

  /** Bytes of the items that were done. */
  public long bytes() {
    return count("bytes");
  }

  /** Requests that the job took, every attempt counted. */
  public long requests() {
    return count("requests");
  }

  /** Connections that it opened. */
  public long connections() {
    return count("connections");
  }

  /** Items that were found and not done, because the job was cancelled or stopped before. */
  public long notDone() {
    return count("not_done");
  }

  /** From the job's start to its end, in milliseconds. */
  public long milliseconds() {
    return count("milliseconds");
  }

  /** Whether the job was cancelled. */
  public boolean isInterrupted() {
    return count("interrupted") != 0;
  }

  /** Whether the job ended at a failure that every other item would have met too. */
  public boolean isStopped() {
    return count("stopped") != 0;
  }

  /** Any of the counts, by the name that the program's records have for it; 0 for one that there isn't. */
  public long count(String name) {
    return counts.getOrDefault(name, 0L);
  }

  /** What failed, at most the first 1000. */
  public List<LanewayException> failures() {
    return failures;
  }

  /** What was left out that the caller may have meant, or done differently than asked; at most the first 1000. */
  public List<String> warnings() {
    return warnings;
  }

  /**
   * This, if nothing failed and all was done.
   *
   * @throws LanewayException the first failure, which has the others suppressed
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
