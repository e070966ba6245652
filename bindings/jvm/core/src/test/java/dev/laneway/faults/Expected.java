package dev.laneway.faults;

import dev.laneway.ErrorKind;
import dev.laneway.faults.Strike.About;
import java.util.Set;

/**
 * How a cell has to end: a table that knows nothing of the library but its kinds of errors.
 *
 * @param maySucceed whether with exactly what was asked for
 * @param kinds or with a failure of one of these
 */
record Expected(boolean maySucceed, Set<ErrorKind> kinds) {
  private static final Expected SUCCESS = new Expected(true, Set.of());

  private static Expected failure(ErrorKind... kinds) {
    return new Expected(false, Set.of(kinds));
  }

  /** By which of several requests came first, or whether the store has said enough. */
  private static Expected either(ErrorKind... kinds) {
    return new Expected(true, Set.of(kinds));
  }

  /** Where it hits each time, the client doesn't try again. */
  static Expected of(Strike strike, Fault.Kind fault, boolean isOnce, String scheme) {
    About about = strike.about();
    boolean isS3 = scheme.equals("s3");
    // Keys whose batch fails are removed one by one.
    boolean isBatch = strike == Strike.DELETE_ALL;
    // What has been handed on of a stream can't be taken back.
    boolean isStreamed = strike == Strike.STREAM;
    // What is answered by something else is begun again. GCS's roles may allow objects and no uploads in parts, and a GCS that answers so each time knows none.
    boolean isBegun = about == About.BEGIN;
    Expected begun = isOnce ? SUCCESS : isS3 ? failure(ErrorKind.SERVER, ErrorKind.TRANSPORT) : failure(ErrorKind.UNSUPPORTED);
    // What a job reads a listing has told the length of.
    boolean isListed = strike == Strike.COPY_DOWN;
    Expected transport = isOnce ? SUCCESS : failure(ErrorKind.TRANSPORT);
    Expected integrity = isOnce ? SUCCESS : failure(ErrorKind.INTEGRITY);
    return switch (fault) {
      case SLOWNESS, NO_LENGTH, GOAWAY, REPLACEMENT -> SUCCESS;
      // What is renamed is removed in its state, for which S3 wants another permission than for removing whatever is there.
      // A HEAD that S3 forbids is sent once more without asking for the checksum.
      case REFUSAL -> isBatch || (strike == Strike.RENAME || about == About.HEADERS) && isS3 && isOnce
          ? SUCCESS
          : isBegun && !isS3 ? failure(ErrorKind.PERMISSION, ErrorKind.UNSUPPORTED) : failure(ErrorKind.PERMISSION);
      case THROTTLE -> isOnce || isBatch
          ? SUCCESS
          // Google's 503 is a failure, Amazon's a throttle; a HEAD doesn't say which.
          : isS3 && about != About.HEADERS ? failure(ErrorKind.THROTTLED) : failure(ErrorKind.THROTTLED, ErrorKind.SERVER);
      case FAILURE -> isOnce || isBatch ? SUCCESS : failure(ErrorKind.SERVER);
      case BREAK, NOT_TAKEN -> isBatch ? either(ErrorKind.TRANSPORT) : transport;
      // A deletion's answer is its status. What an answer to a write or a HEAD of S3's lacks may be nothing to it.
      case LOSS -> about == About.REMOVAL
              || about == About.PART
              || about == About.HEADERS && isS3
              || about == About.WRITE && !isOnce
          ? either(ErrorKind.TRANSPORT)
          : transport;
      case CORRUPTION -> isStreamed ? either(ErrorKind.INTEGRITY) : integrity;
      case WRONG_CHECKSUM -> switch (about) {
        case CONTENT -> isStreamed ? either(ErrorKind.INTEGRITY) : integrity;
        case WRITE, PART -> either(ErrorKind.INTEGRITY);
        default -> SUCCESS;
      };
      // Where two places say how long it is, they contradict each other, and nobody knows which is right.
      case LONG_LENGTH -> switch (about) {
        case CONTENT -> isListed
            ? either(ErrorKind.INTEGRITY, ErrorKind.TRANSPORT)
            : failure(ErrorKind.INTEGRITY, ErrorKind.INVALID_RANGE, ErrorKind.TRANSPORT);
        case WRITE, PART, REMOVAL -> either(ErrorKind.TRANSPORT);
        default -> transport;
      };
      case SHORT_LENGTH -> about == About.CONTENT && !isOnce
          ? failure(ErrorKind.TRANSPORT, ErrorKind.INTEGRITY)
          : about == About.CONTENT ? SUCCESS : isBegun ? begun : either(ErrorKind.TRANSPORT, ErrorKind.INTEGRITY, ErrorKind.SERVER);
      case OTHER_RANGE -> failure(ErrorKind.UNSUPPORTED);
      case ERROR_IN_200 -> switch (about) {
        case RANGE -> failure(ErrorKind.SERVER, ErrorKind.UNSUPPORTED, ErrorKind.PRECONDITION);
        case CONTENT -> failure(ErrorKind.SERVER);
        case REMOVAL -> isBatch ? either(ErrorKind.SERVER) : failure(ErrorKind.SERVER);
        // What says that it was done and doesn't say how is not done again, but looked at.
        default -> isBegun ? begun : either(ErrorKind.SERVER, ErrorKind.INTEGRITY);
      };
      case UNREADABLE -> isBegun ? begun : either(ErrorKind.SERVER);
    };
  }
}
