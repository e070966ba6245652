package dev.laneway.faults;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import dev.laneway.faults.Strike.About;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the library with the faults of the embedded store. In each dialect, each fault hits each operation, either once
 * or always. The operation is a blocking call or a future. It must end with exactly the right result or with a failure
 * of the right kind, after a bounded number of attempts, and leave nothing behind.
 */
class FaultMatrixTest {
  /** Rows spend most of their time in pauses. */
  private static final int THREADS = 8;

  /** A row that takes more seconds than this counts as hanging. */
  private static final int ROW_MAX = 120;

  private static final int CELLS_MIN = 900;

  /** Long enough for temporary failures to end. */
  private static final Duration RETRY_FOR = Duration.ofSeconds(20);

  /** The client's time limit for a silent connection, for faults that make a connection silent. */
  private static final Duration STALL_TIMEOUT = Duration.ofMillis(700);

  /**
   * If the server didn't accept a request, Laneway repeats it at once, up to ten times. It repeats other requests a few
   * times.
   */
  private static final int ATTEMPTS_MAX = 30;

  @TempDir Path top;

  /**
   * The cells of a fault, which share a store. The fault hits the first request of each cell, or all of them.
   *
   * @param turn if it is odd, the row has the other half of the requests
   */
  private record Row(Fault fault, String scheme, boolean isOnce, boolean isTls, int turn) {
    /**
     * In each dialect a fault hits one half of the requests once, and the other half always. The dialects swap the
     * halves.
     */
    List<Strike> strikes() {
      List<Strike> strikes = new ArrayList<>();
      for (Strike strike : Strike.values()) {
        boolean isFirst = (strike.ordinal() + turn) % 2 == 0;
        if (isFirst == (isOnce == scheme.equals("s3")) && canMeet(strike)) {
          strikes.add(strike);
        }
      }
      return strikes;
    }

    private boolean canMeet(Strike strike) {
      About about = strike.about(scheme);
      boolean isContent = about == About.CONTENT;
      boolean isRead = isContent || about == About.RANGE;
      boolean isSent = List.of("put", "part").contains(strike.verb(scheme));
      if (fault.isSilent() && List.of("copy", "complete").contains(strike.verb(scheme))) {
        // A copy or completion may take minutes, so the client waits.
        return false;
      }
      return switch (fault.kind()) {
        // Nothing contradicts a wrong length in a HEAD's answer.
        case LONG_LENGTH, SHORT_LENGTH, NO_LENGTH -> about != About.HEADERS;
        case OTHER_RANGE -> about == About.RANGE;
        // A reader stays at the version that it has opened.
        case REPLACEMENT -> isContent;
        case UNREADABLE -> !isRead && about != About.HEADERS;
        case WRONG_CHECKSUM -> isContent || about == About.HEADERS || isSent;
        case CORRUPTION -> isContent || isSent;
        default -> true;
      };
    }

    List<String> rules() {
      List<String> rules = new ArrayList<>();
      for (Strike strike : strikes()) {
        // A batch has no key that a rule could match, but only one operation sends batches.
        String key = strike == Strike.DELETE_ALL ? "" : "key=" + strike.folder() + "/* ";
        rules.add(strike.verb(scheme) + (isOnce ? ":1 " : ":1-999999 ") + key + fault.action());
      }
      return rules;
    }

    @Override
    public String toString() {
      return fault.action() + (isOnce ? "/once/" : "/always/") + scheme + (isTls ? "-h2" : "-h1");
    }
  }

  @Test
  void every_fault_ends_in_exact_success_or_the_right_failure() throws Exception {
    List<Future<List<String>>> running = new ArrayList<>();
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    int cells = 0;
    try {
      List<Fault> faults = Fault.all();
      for (int turn = 0; turn < faults.size(); turn++) {
        for (String scheme : List.of("s3", "gs")) {
          for (boolean isOnce : new boolean[] {true, false}) {
            boolean isTls = faults.get(turn).isOfHttp2() || turn % 2 == 1;
            Row row = new Row(faults.get(turn), scheme, isOnce, isTls, turn);
            cells += row.strikes().size();
            running.add(threads.submit(() -> run(row)));
          }
        }
      }
      List<String> failures = new ArrayList<>();
      for (Future<List<String>> row : running) {
        failures.addAll(row.get(ROW_MAX, TimeUnit.SECONDS));
      }
      String all = failures.size() + " of " + cells + " cells:\n" + String.join("\n", failures);
      assertTrue(failures.isEmpty(), all);
      assertTrue(cells >= CELLS_MIN, "only " + cells);
    } finally {
      threads.shutdownNow();
    }
  }

  private List<String> run(Row row) throws Exception {
    List<String> failures = new ArrayList<>();
    if (row.strikes().isEmpty()) {
      return failures;
    }
    Path own = Files.createTempDirectory(top, "row");
    try (FaultyStore store = new FaultyStore(row.isTls(), row.rules())) {
      Laneway.Builder settings = store.settings().retryFor(row.isOnce() ? RETRY_FOR : Duration.ZERO);
      if (row.fault().isSilent()) {
        settings.stallTimeout(STALL_TIMEOUT);
      }
      for (Strike strike : row.strikes()) {
        // Each operation has its own client, because a client remembers what it has learned about a store.
        try (Laneway laneway = settings.build(); Laneway patient = store.settings().build()) {
          String url = row.scheme() + "://lake/" + strike.folder() + "/";
          Path folder = Files.createDirectory(own.resolve(strike.folder()));
          boolean isAsync = (strike.ordinal() + row.turn()) / 2 % 2 == 1;
          Scene scene = new Scene(laneway, laneway.bucket(url), folder, isAsync);
          String wrong = wrong(row, strike, scene, new Scene(patient, patient.bucket(url), folder, false));
          if (wrong != null) {
            failures.add(strike.name() + "/" + row + ": " + wrong);
          }
        }
      }
    }
    return failures;
  }

  /** Returns the mistake in a cell's outcome, if there is one. {@code beside} prepares and checks the objects. */
  private static String wrong(Row row, Strike strike, Scene scene, Scene beside) throws Exception {
    strike.prepare(beside);
    boolean isRight = true;
    Exception thrown = null;
    try {
      isRight = strike.succeeds(scene);
    } catch (Exception failure) {
      thrown = failure;
    }
    LanewayException failure = Scene.failure(thrown);
    Expected expected = Expected.of(strike, row.fault().kind(), row.isOnce(), row.scheme());
    if (thrown != null && failure == null) {
      return "it threw something else: " + thrown;
    }
    if (failure == null ? !expected.maySucceed() : !expected.kinds().contains(failure.kind())) {
      return expected + ", and it was " + (failure == null ? "success" : failure.kind() + ": " + failure.getMessage());
    }
    if (!isRight) {
      return "other bytes or names";
    }
    // The failure of a listing or a batch names only the bucket.
    boolean isOfBucket = strike.about(row.scheme()) == About.DOCUMENT || strike == Strike.DELETE_ALL;
    String about = row.scheme() + "://lake" + (isOfBucket ? "" : "/" + strike.folder());
    if (failure != null && !(failure.getMessage().contains(about) && failure.url().contains(about))) {
      return "the failure doesn't name its object: " + failure.getMessage();
    }
    if (failure != null && failure.attempts() > ATTEMPTS_MAX) {
      return failure.attempts() + " attempts";
    }
    int uploads = beside.bucket().multipartUploads("").size();
    // If the answer to the beginning of an upload was lost, Laneway doesn't know the upload's name. If the answer can't
    // be read, Laneway begins the upload up to three times. Without retries, an abort may fail because its connection
    // broke.
    boolean isLost = row.isTls() && !row.isOnce() && List.of(Fault.Kind.BREAK, Fault.Kind.LOSS).contains(row.fault().kind());
    int begun = strike.about(row.scheme()) != About.BEGIN ? 0 : row.isOnce() ? 1 : 3;
    if (uploads > Math.max(begun, isLost ? 1 : 0)) {
      return uploads + " uploads are left";
    }
    return strike.left(beside, failure == null);
  }
}
