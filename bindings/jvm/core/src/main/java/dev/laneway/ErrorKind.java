package dev.laneway;

/**
 * The kind of a failure, for callers that handle some failures differently from others. Each kind has a number that
 * never changes. Later versions may add kinds.
 */
public enum ErrorKind {
  /** The object, bucket or path doesn't exist. */
  NOT_FOUND(1),
  /** The object exists, and the write required that it doesn't. */
  ALREADY_EXISTS(2),
  /** The object doesn't meet the condition of the request; for example, it has another version. */
  PRECONDITION(3),
  /** The object hasn't changed since the version or time in the request, so there is nothing to fetch. */
  NOT_MODIFIED(4),
  /** The credentials don't permit the request. */
  PERMISSION(5),
  /** There are no credentials, or the store doesn't accept them. */
  UNAUTHENTICATED(6),
  /** The store asked Laneway to slow down at every attempt. */
  THROTTLED(7),
  /** The store failed at every attempt, or its answer is invalid. */
  SERVER(8),
  /** The store's answer didn't arrive, or only a part of it did. */
  TRANSPORT(9),
  /** The deadline of the call passed. */
  TIMEOUT(10),
  /** Bytes or checksums differ from the expected ones. */
  INTEGRITY(11),
  /** The range lies outside the object, or is empty. */
  INVALID_RANGE(12),
  /** The store refuses the request as invalid, whatever the state of the object is. */
  INVALID(13),
  /** The request as a whole is invalid, because of a mistake by the caller. Nothing was sent. */
  USAGE(14),
  /** Laneway refuses a name or a combination that would be unsafe or ambiguous. */
  REFUSED(15),
  /** The store doesn't support the operation. */
  UNSUPPORTED(16),
  /** The object must be restored from an archive before it can be read. */
  ARCHIVED(17),
  /** The source changed, vanished or can't be read. */
  SOURCE(18),
  /** Writing to the destination failed. */
  DESTINATION(19),
  /** A file operation failed. */
  LOCAL(20),
  /** The call or job was cancelled before it was done. */
  CANCELLED(21),
  /** The engine itself failed because of a bug, or reported a kind that this version doesn't know. */
  INTERNAL(22);

  private final int code;

  ErrorKind(int code) {
    this.code = code;
  }

  /** Returns the kind's number, for code that needs a number instead of a name. */
  public int code() {
    return code;
  }

  static ErrorKind of(int code) {
    for (ErrorKind kind : values()) {
      if (kind.code == code) {
        return kind;
      }
    }
    return INTERNAL;
  }
}
