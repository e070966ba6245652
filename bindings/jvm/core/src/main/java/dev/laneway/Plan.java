package dev.laneway;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * A plan of a very large transfer. {@link Laneway#planCopy} and its siblings make a plan in a folder: a path, or the
 * URL of a prefix. The plan names every object with its version and checksum, in parts. Any number of threads and
 * processes, on any number of machines, open the plan and run its parts:
 *
 * <pre>{@code
 * laneway.planCopy("s3://lake/raw", "gs://copy/", "s3://lake/plans/1", PlanOptions.NONE);
 * try (Plan plan = laneway.openPlan("s3://lake/plans/1")) {
 *   while (plan.runNext(PlanOptions.NONE) != null) {}
 * }
 * }</pre>
 *
 * <p>A process may be killed at any time. Then another process repeats its part. If the thread is interrupted, methods
 * throw an {@link java.io.InterruptedIOException}, and the thread's interrupt flag stays set. A part that was running
 * then is free for other runners.
 */
public final class Plan implements AutoCloseable {
  private final Handle handle;
  private final String folder;
  private final Fields index;

  private Plan(Handle handle, String folder, Fields index) {
    this.handle = handle;
    this.folder = folder;
    this.index = index;
  }

  static Totals make(Handle client, String verb, PlanOptions options) throws IOException {
    return Totals.read(new Fields(PlanTask.run(client, verb, options, false).value()));
  }

  static Plan open(Handle client, String folder) throws IOException {
    PlanTask.Ended opened = PlanTask.run(client, "open", PlanOptions.NONE.argument("folder", folder), false);
    return new Plan(Handle.watched(opened.plan(), "a plan"), folder, new Fields(opened.value()));
  }

  /** Returns the plan's folder. */
  public String folder() {
    return folder;
  }

  /** Returns {@code copy}, {@code sync}, {@code remove} or {@code verify}. */
  public String kind() {
    return index.text("kind");
  }

  /** Returns the URL of the source's prefix. */
  public String source() {
    return index.text("source");
  }

  /** Returns the URL of the destination's prefix, or {@code null} if the plan removes objects. */
  public String destination() {
    return index.text("destination");
  }

  /** Returns the folder of the plan whose failed rows this plan repeats, or {@code null}. */
  public String retryOf() {
    return index.text("retry_of");
  }

  /** Returns the parts. Their places in this list are their numbers. */
  public List<Part> parts() {
    List<Part> parts = new ArrayList<>();
    index.list("parts").forEach(part -> parts.add(Part.read(new Fields(part))));
    return List.copyOf(parts);
  }

  /**
   * Runs a part that nobody else runs, and returns its result. Returns {@code null} if no part is left. While other
   * runners hold all parts that are left, this waits for them. Failed rows don't cause an exception.
   */
  public Result runNext(PlanOptions options) throws IOException {
    Object result = PlanTask.run(handle, "run", options, true).value();
    return result == null ? null : Result.read(new Fields(result));
  }

  /**
   * Runs the part with a number, counted from 0, and returns its result. If the part has ended before, returns the
   * result that it has. While another runner holds the part, this waits for it. So two attempts of one task, as Spark's
   * speculation makes them, both return the result.
   *
   * @throws LanewayException if the plan has no such part
   */
  public Result runPart(int number, PlanOptions options) throws IOException {
    PlanOptions numbered = options.argument("part", Integer.toString(number));
    return Result.read(new Fields(PlanTask.run(handle, "run", numbered, true).value()));
  }

  /** Reads the state of the plan. */
  public Status status() throws IOException {
    return Status.read(new Fields(PlanTask.run(handle, "status", PlanOptions.NONE, false).value()));
  }

  /** Compares the plan with a fresh listing of the destination. {@link PlanOptions#onRow} receives each difference. */
  public Check verify(PlanOptions options) throws IOException {
    return Check.read(new Fields(PlanTask.run(handle, "check", options, false).value()));
  }

  /** Compares only one part, so that many machines can share the work. */
  public Check verifyPart(int number, PlanOptions options) throws IOException {
    return verify(options.argument("part", Integer.toString(number)));
  }

  /**
   * Makes a plan in another folder that repeats the failed rows of this one. Returns its totals, or {@code null} if
   * nothing has failed. The new plan leaves out objects that are gone, and copies the present versions of the others.
   */
  public Totals retry(String folder) throws IOException {
    PlanOptions where = PlanOptions.NONE.argument("folder", folder);
    Object totals = PlanTask.run(handle, "retry", where, false).value();
    return totals == null ? null : Totals.read(new Fields(totals));
  }

  /**
   * Writes the outcome of each row to a file, and returns the number of rows. The file is a completion report like that
   * of S3 Batch Operations: CSV without a header, with the columns Bucket, Key, VersionId, TaskStatus, ErrorCode,
   * HTTPStatusCode and ResultMessage.
   */
  public long report(String file) throws IOException {
    PlanOptions where = PlanOptions.NONE.argument("file", file);
    return ((Number) PlanTask.run(handle, "report", where, false).value()).longValue();
  }

  /** Closes the plan. Parts that run continue. */
  @Override
  public void close() {
    handle.close();
  }

  @Override
  public String toString() {
    return "Plan[" + folder + "]";
  }

  /**
   * The totals of a plan that was made.
   *
   * @param objects Objects that the plan copies or compares.
   * @param bytes Their bytes.
   * @param removed Objects that the plan removes.
   * @param parts The number of parts.
   * @param resumedRows Rows that an earlier, interrupted call had planned.
   */
  public record Totals(long objects, long bytes, long removed, long parts, long resumedRows) {
    private static Totals read(Fields from) {
      return new Totals(
          from.number("objects"),
          from.number("bytes"),
          from.number("removed"),
          from.number("parts"),
          from.number("resumed_rows"));
    }
  }

  /**
   * A part of a plan.
   *
   * @param name The name of its file, relative to the plan's folder.
   * @param action {@code copy}, {@code remove} or {@code verify}.
   * @param rows The number of its objects.
   * @param bytes Their bytes.
   */
  public record Part(String name, String action, long rows, long bytes) {
    private static Part read(Fields from) {
      return new Part(from.text("name"), from.text("action"), from.number("rows"), from.number("bytes"));
    }
  }

  /**
   * The outcome of one object.
   *
   * @param url The object's URL.
   * @param destination The URL of its copy, or {@code null}.
   * @param bytes Its size.
   * @param error The reason of the failure or difference.
   * @param kind The kind of the failure, as in the program's JSON. In a comparison, it is {@code missing}, {@code
   *     different}, {@code left} or {@code extra}.
   * @param status The HTTP status, or 0.
   */
  public record Row(String url, String destination, long bytes, String error, String kind, int status) {
    static Row read(Map<?, ?> row) {
      Fields from = new Fields(row);
      return new Row(
          from.text("url"),
          from.text("destination"),
          from.number("bytes"),
          from.text("error"),
          from.text("class"),
          (int) from.number("status"));
    }
  }

  /**
   * The result of a part.
   *
   * @param number The part's number, counted from 0.
   * @param runner The name of its runner.
   * @param attempt The number of the attempt, counted from 1.
   * @param rows The number of its rows.
   * @param done Rows that were done.
   * @param skipped Rows that needed no action.
   * @param failed Rows that failed.
   * @param unverified Rows that were done, but without a checksum to compare.
   * @param bytes Bytes of the rows that were done.
   * @param requests Requests that were sent, counting every attempt.
   * @param milliseconds The time that the part took.
   * @param failures The number of failures of each kind.
   */
  public record Result(
      int number,
      String runner,
      long attempt,
      long rows,
      long done,
      long skipped,
      long failed,
      long unverified,
      long bytes,
      long requests,
      long milliseconds,
      Map<String, Long> failures) {
    private static Result read(Fields from) {
      return new Result(
          (int) from.number("number"),
          from.text("runner"),
          from.number("attempt"),
          from.number("rows"),
          from.number("done"),
          from.number("skipped"),
          from.number("failed"),
          from.number("unverified"),
          from.number("bytes"),
          from.number("requests"),
          from.milliseconds("seconds"),
          from.counts("failures"));
    }
  }

  /** The state of a part. */
  public enum State {
    /** No runner has taken the part. */
    WAITING,
    /** A runner holds the part. */
    RUNNING,
    /** The runner has died. Another runner repeats the part. */
    EXPIRED,
    /** The part's runners always died. Only {@link Plan#runPart} still runs it. */
    GIVEN_UP,
    /** The part has ended. */
    ENDED
  }

  /**
   * The state of a plan.
   *
   * @param states The state of each part.
   * @param done Rows that were done.
   * @param skipped Rows that needed no action.
   * @param failed Rows that failed.
   * @param left Rows of parts that haven't ended.
   * @param bytesDone Bytes of the rows that were done.
   * @param bytesLeft Bytes of the rows of parts that haven't ended.
   * @param milliseconds The sum of the times of all parts.
   * @param failures The number of failures of each kind.
   */
  public record Status(
      List<State> states,
      long done,
      long skipped,
      long failed,
      long left,
      long bytesDone,
      long bytesLeft,
      long milliseconds,
      Map<String, Long> failures) {
    private static Status read(Fields from) {
      List<State> states = new ArrayList<>();
      for (Object state : from.list("states")) {
        states.add(State.valueOf(state.toString().toUpperCase(Locale.ROOT)));
      }
      return new Status(
          List.copyOf(states),
          from.number("done"),
          from.number("skipped"),
          from.number("failed"),
          from.number("left"),
          from.number("bytes_done"),
          from.number("bytes_left"),
          from.milliseconds("seconds"),
          from.counts("failures"));
    }

    /** Returns the number of parts in a state. */
    public long count(State state) {
      return states.stream().filter(state::equals).count();
    }
  }

  /**
   * The outcome of a comparison of a plan with its destination.
   *
   * @param isClean True if everything that the plan names is as planned.
   * @param same Rows whose object is as planned.
   * @param unverified Rows among them whose objects have equal sizes, but no checksum to compare.
   * @param missing Rows whose copy is missing.
   * @param different Rows whose copy differs.
   * @param left Objects that should have been removed, and are still there.
   * @param extra Objects at the destination that the plan doesn't name.
   */
  public record Check(
      boolean isClean, long same, long unverified, long missing, long different, long left, long extra) {
    private static Check read(Fields from) {
      return new Check(
          from.flag("is_clean"),
          from.number("same"),
          from.number("unverified"),
          from.number("missing"),
          from.number("different"),
          from.number("left"),
          from.number("extra"));
    }
  }

  /** The fields of a result by name. */
  private record Fields(Map<?, ?> fields) {
    Fields(Object value) {
      this((Map<?, ?>) Objects.requireNonNull(value));
    }

    String text(String name) {
      return (String) fields.get(name);
    }

    boolean flag(String name) {
      return Boolean.TRUE.equals(fields.get(name));
    }

    long number(String name) {
      return fields.get(name) instanceof Number number ? number.longValue() : 0;
    }

    long milliseconds(String name) {
      return fields.get(name) instanceof Number seconds ? Math.round(seconds.doubleValue() * 1000) : 0;
    }

    List<?> list(String name) {
      return fields.get(name) instanceof List<?> list ? list : List.of();
    }

    Map<String, Long> counts(String name) {
      Map<String, Long> counts = new TreeMap<>();
      if (fields.get(name) instanceof Map<?, ?> named) {
        named.forEach((key, count) -> counts.put((String) key, ((Number) count).longValue()));
      }
      return Map.copyOf(counts);
    }
  }
}
