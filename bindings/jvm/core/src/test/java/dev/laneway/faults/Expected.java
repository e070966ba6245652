package dev.laneway.faults;

import dev.laneway.ErrorKind;
import dev.laneway.faults.Strike.About;
import java.util.Set;

/**
 * The expected outcome of a cell. This table doesn't use the library's code, except for its kinds of errors.
 *
 * @param maySucceed true if the cell may succeed, with exactly the requested result
 * @param kinds the kinds of failure with which it may end
 */
record Expected(boolean maySucceed, Set<ErrorKind> kinds) {
  private static final Expected SUCCESS = new Expected(true, Set.of());

  private static Expected failure(ErrorKind... kinds) {
    return new Expected(false, Set.of(kinds));
  }

  /**
   * Returns an outcome that depends on which request came first, or on whether the broken answer already contained
   * enough.
   */
  private static Expected either(ErrorKind... kinds) {
    return new Expected(true, Set.of(kinds));
  }

  /** Returns the expected outcome. If the fault hits every request, the client doesn't retry. */
  static Expected of(Strike strike, Fault.Kind fault, boolean isOnce, String scheme) {
    About about = strike.about(scheme);
    boolean isS3 = scheme.equals("s3");
    // Keys whose batch fails are removed one by one.
    boolean isBatch = strike == Strike.DELETE_ALL;
    // Bytes that a stream has delivered can't be taken back.
    boolean isStreamed = strike == Strike.STREAM;
    // If the answer to the beginning of an upload is unreadable, Laneway begins the upload again. If all such answers
    // from a GCS server are unreadable, Laneway treats it as a server without multipart uploads. GCS has roles that
    // permit creating objects, but not multipart uploads.
    boolean isBegun = about == About.BEGIN;
    Expected begun = isOnce ? SUCCESS : isS3 ? failure(ErrorKind.SERVER, ErrorKind.TRANSPORT) : failure(ErrorKind.UNSUPPORTED);
    // A job knows the length of each object from a listing.
    boolean isListed = strike == Strike.COPY_DOWN;
    Expected transport = isOnce ? SUCCESS : failure(ErrorKind.TRANSPORT);
    Expected integrity = isOnce ? SUCCESS : failure(ErrorKind.INTEGRITY);
    return switch (fault) {
      case SLOWNESS, NO_LENGTH, GOAWAY, REPLACEMENT -> SUCCESS;
      // A rename removes its source under a condition. A 403 may mean that only the condition isn't permitted, so
      // Laneway compares the source and removes it without the condition. A HEAD that S3 forbids is sent once more
      // without asking for the checksum.
      case REFUSAL -> isBatch || (strike == Strike.RENAME || about == About.HEADERS) && isS3 && isOnce
          ? SUCCESS
          : isBegun && !isS3 ? failure(ErrorKind.PERMISSION, ErrorKind.UNSUPPORTED) : failure(ErrorKind.PERMISSION);
      case THROTTLE -> isOnce || isBatch
          ? SUCCESS
          // A 503 from Google is a failure, and one from Amazon is a throttle. The answer to a HEAD doesn't show which
          // of them sent it.
          : isS3 && about != About.HEADERS ? failure(ErrorKind.THROTTLED) : failure(ErrorKind.THROTTLED, ErrorKind.SERVER);
      case FAILURE -> isOnce || isBatch ? SUCCESS : failure(ErrorKind.SERVER);
      case BREAK, NOT_TAKEN -> isBatch ? either(ErrorKind.TRANSPORT) : transport;
      // The answer to a delete consists only of the status. A write, or a HEAD on S3, may not need the lost part of its
      // answer.
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
      // If two headers state different lengths, it is unknown which is right.
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
        // If an answer reports success but gives no details, Laneway doesn't repeat the request. It looks at the object
        // instead.
        default -> isBegun ? begun : either(ErrorKind.SERVER, ErrorKind.INTEGRITY);
      };
      case UNREADABLE -> isBegun ? begun : either(ErrorKind.SERVER);
    };
  }
}
