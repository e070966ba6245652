package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.Download;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import dev.laneway.PutOptions;
import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Faults of the embedded store, each of which hits a request of each operation. One store has all faults. Each cell has
 * its own folder, and its fault hits only requests for this folder. The core's matrix tests which kind of failure
 * follows from a fault. These cells test that a call either has exactly the right result, or throws an exception that
 * callers of the tested interface (the face) expect.
 */
public final class FaultCells {
  /** The subject of a request. */
  public enum About {
    /** Bytes of an object. An interface that can seek requests ranges, and no store reports a range's checksum. */
    RANGE,
    HEADERS,
    DOCUMENT,
    WRITE,
    REMOVAL
  }

  /** Calls an interface, and returns whether its result is right. */
  public interface Call<F> {
    boolean isAnswerRight(F face, Place place) throws Exception;
  }

  /** Returns whether the store's content is right. */
  public interface Leftover {
    boolean isRight(Place place, boolean hasSucceeded) throws IOException;
  }

  /**
   * A call of an interface. Unless the call creates {@code k}, the objects {@code k} and {@code l} exist.
   *
   * @param verb the verb of the call's request that the fault hits, as in the store's rules
   * @param isNew whether the call creates {@code k}
   */
  public record Operation<F>(String name, String verb, About about, boolean isNew, Call<F> call, Leftover leftover) {
    public static <F> Operation<F> reading(String name, String verb, About about, Call<F> call) {
      return new Operation<>(name, verb, about, false, call, (place, hasSucceeded) -> true);
    }

    public static <F> Operation<F> creating(Call<F> call) {
      return new Operation<>("create", "put", About.WRITE, true, call, (place, hasSucceeded) -> {
        Stored created = place.stored("k");
        return created == Stored.WHOLE || created == Stored.ABSENT && !hasSucceeded;
      });
    }

    /** Moves {@code k} to {@code to}. The source must exist until the copy exists, and must be gone after success. */
    public static <F> Operation<F> moving(String name, String verb, About about, Call<F> call) {
      return new Operation<>(name, verb, about, false, call, (place, hasSucceeded) -> {
        Stored source = place.stored("k");
        Stored destination = place.stored("to");
        boolean isThere = source == Stored.WHOLE || destination == Stored.WHOLE;
        boolean areWhole = source != Stored.OTHER && destination != Stored.OTHER;
        return isThere && areWhole && (!hasSucceeded || source == Stored.ABSENT);
      });
    }

    /** Removes {@code k}. */
    public static <F> Operation<F> removing(Call<F> call) {
      return new Operation<>("delete", "delete", About.REMOVAL, false, call, (place, hasSucceeded) -> {
        Stored removed = place.stored("k");
        return (removed == Stored.ABSENT || removed == Stored.WHOLE && !hasSucceeded) && place.stored("l") != Stored.ABSENT;
      });
    }

    private void prepare(Place place) throws IOException {
      if (!isNew) {
        place.bucket().put("k", ByteBuffer.wrap(BYTES), PutOptions.NONE);
        place.bucket().put("l", ByteBuffer.allocate(1), PutOptions.NONE);
      }
    }
  }

  /** Sets up an interface for one cell, because a client remembers what it has learned about a store. */
  public interface Face<F extends Closeable> {
    F of(EmbeddedStore store, String scheme) throws IOException;
  }

  /** Returns whether callers of the interface expect an exception of this kind. */
  public interface Known {
    boolean is(Exception failure);
  }

  /** The state of an object. */
  private enum Stored {
    ABSENT,
    WHOLE,
    OTHER
  }

  /**
   * The folder in which an operation runs.
   *
   * @param url the URL of the folder, with a slash at its end
   * @param bucket the same folder, through the library
   */
  public record Place(String url, Bucket bucket) {
    private Stored stored(String key) throws IOException {
      try (Download download = bucket.get(key)) {
        return isRead(download.bytes()) ? Stored.WHOLE : Stored.OTHER;
      } catch (LanewayException failure) {
        if (failure.isNotFound()) {
          return Stored.ABSENT;
        }
        throw failure;
      }
    }
  }

  private enum Expected {
    SUCCESS,
    FAILURE,
    EITHER
  }

  /**
   * A fault that hits the first request, or all requests. If the client would retry until its time is over, the fault
   * hits only the first request.
   */
  private record Fault(String action, boolean isOnce) {
    boolean canMeet(String verb, About about) {
      return switch (action) {
        // A copy may take minutes, so the client waits.
        case "stall" -> !verb.equals("copy");
        case "range ignored", "range shifted", "replace" -> about == About.RANGE;
        // No other request or answer has a checksum.
        case "corrupt", "wrong-checksum" -> verb.equals("put");
        case "garble", "malformed" -> about != About.RANGE && about != About.HEADERS;
        case "length +7", "length -1" -> about != About.HEADERS;
        default -> true;
      };
    }

    Expected expected(About about) {
      return switch (action) {
        // A HEAD that S3 forbids is sent once more without asking for the checksum.
        case "status 403" -> isOnce && about == About.HEADERS ? Expected.EITHER : Expected.FAILURE;
        case "range ignored", "range shifted" -> Expected.FAILURE;
        case "status 503", "reset" -> Expected.SUCCESS;
        case "drop@100", "cut@100", "truncate", "stall", "lose-answer" -> about == About.RANGE || about == About.DOCUMENT
            ? Expected.SUCCESS
            : Expected.EITHER;
        case "corrupt" -> isOnce ? Expected.SUCCESS : Expected.FAILURE;
        default -> Expected.EITHER;
      };
    }
  }

  private static final List<Fault> FAULTS = List.of(
      new Fault("status 403", false),
      new Fault("status 503", true),
      new Fault("reset", true),
      new Fault("drop@100", true),
      new Fault("cut@100", true),
      new Fault("truncate", true),
      new Fault("stall", true),
      new Fault("lose-answer", true),
      new Fault("corrupt", true),
      new Fault("corrupt", false),
      new Fault("wrong-checksum", false),
      new Fault("range ignored", false),
      new Fault("range shifted", false),
      new Fault("length +7", false),
      new Fault("length -1", true),
      new Fault("replace", true),
      new Fault("error-in-200", false),
      new Fault("garble", false),
      new Fault("malformed", false));

  /** The content of every object, which is longer than the bytes that come with the opening request. */
  public static final byte[] BYTES = new byte[1_100_000];

  static {
    new Random(11).nextBytes(BYTES);
  }

  /** Cells spend most of their time in pauses. */
  private static final int THREADS = 16;

  /** A cell that takes more seconds than this counts as hanging. */
  private static final int CELL_MAX = 300;

  private record Cell<F>(Operation<F> operation, Fault fault, String scheme) {
    String folder() {
      String action = fault.action().replaceAll("[^a-z0-9]+", "-");
      return scheme + "-" + operation.name() + "-" + action + (fault.isOnce() ? "-once" : "-always");
    }

    String rule() {
      return operation.verb() + (fault.isOnce() ? ":1" : "") + " key=" + folder() + "/* " + fault.action();
    }
  }

  private FaultCells() {}

  /** Returns whether the bytes are an object's, or the bytes that another writer stores instead. */
  public static boolean isRead(byte[] bytes) {
    return isRead(0, bytes, BYTES.length);
  }

  /** Does the same for a part of the bytes. */
  public static boolean isRead(int from, byte[] bytes, int length) {
    byte[] there = Arrays.copyOfRange(BYTES, from, from + length);
    byte[] inverted = new byte[length];
    for (int at = 0; at < length; at++) {
      inverted[at] = (byte) ~there[at];
    }
    return Arrays.equals(bytes, there) || Arrays.equals(bytes, inverted);
  }

  /** Runs all cells, and returns the mistakes in their outcomes. */
  public static <F extends Closeable> List<String> run(
      List<Operation<F>> operations, List<String> schemes, Face<F> face, Known known) throws Exception {
    List<Cell<F>> cells = new ArrayList<>();
    for (Operation<F> operation : operations) {
      for (String scheme : schemes) {
        if (operation.name().equals("rename-removes") && scheme.equals("gs")) {
          // GCS moves an object by one request, so there is no removal.
          continue;
        }
        FAULTS.stream()
            .filter(fault -> fault.canMeet(operation.verb(), operation.about()))
            .forEach(fault -> cells.add(new Cell<>(operation, fault, scheme)));
      }
    }
    EmbeddedStore store = EmbeddedStore.broken("lake", cells.stream().map(Cell::rule).toArray(String[]::new));
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    try {
      List<Future<String>> running = new ArrayList<>();
      for (Cell<F> cell : cells) {
        running.add(threads.submit(() -> wrong(cell, store, face, known)));
      }
      List<String> failures = new ArrayList<>();
      for (int at = 0; at < cells.size(); at++) {
        String wrong = running.get(at).get(CELL_MAX, TimeUnit.SECONDS);
        if (wrong != null) {
          failures.add(cells.get(at).folder() + ": " + wrong);
        }
      }
      return failures;
    } finally {
      threads.shutdownNow();
    }
  }

  private static <F extends Closeable> String wrong(Cell<F> cell, EmbeddedStore store, Face<F> face, Known known)
      throws Exception {
    String url = cell.scheme() + "://lake/" + cell.folder() + "/";
    Expected expected = cell.fault().expected(cell.operation().about());
    try (Laneway laneway = Laneway.builder().s3Endpoint(store.url()).gcsEndpoint(store.url()).region("us-east-1").anonymous(true).build();
        F one = face.of(store, cell.scheme())) {
      Place place = new Place(url, laneway.bucket(url.replace("s3a:", "s3:")));
      cell.operation().prepare(place);
      Exception failed = null;
      try {
        if (!cell.operation().call().isAnswerRight(one, place)) {
          return "something else came back";
        }
      } catch (Exception failure) {
        failed = failure;
      }
      if (failed != null && !known.is(failed)) {
        return "nobody knows this exception: " + failed;
      }
      String how = failed == null ? "it has succeeded" : "it failed: " + failed;
      if (expected == (failed == null ? Expected.FAILURE : Expected.SUCCESS)) {
        return expected + " was expected, and " + how;
      }
      return cell.operation().leftover().isRight(place, failed == null) ? null : "something else is left, and " + how;
    }
  }
}
