package dev.laneway;

/**
 * The kind of a failure, for callers that treat failures differently. Each kind has a number that never changes. Later
 * versions may add kinds.
 */
public enum ErrorKind {
  /** The object, bucket or path doesn't exist. */
  NOT_FOUND(1),
  /** The object exists, and the write was allowed only if it doesn't. */
  ALREADY_EXISTS(2),
  /** The object isn't in the state that the request named. */
  PRECONDITION(3),
  /** The object has not changed since the named state or time, so there is nothing to fetch. */
  NOT_MODIFIED(4),
  /** The store forbids it. */
  PERMISSION(5),
  /** There are no credentials, or the store doesn't accept them. */
  UNAUTHENTICATED(6),
  /** The store asked to slow down until the attempts ran out. */
  THROTTLED(7),
  /** The store failed until the attempts ran out, or its answer makes no sense. */
  SERVER(8),
  /** No answer came, or an incomplete one. */
  TRANSPORT(9),
  /** The deadline of the call passed. */
  TIMEOUT(10),
  /** Bytes or checksums differ from the expected ones. */
  INTEGRITY(11),
  /** The range lies outside the object, or is empty. */
  INVALID_RANGE(12),
  /** The store refuses the request, whatever the object's state. */
  INVALID(13),
  /** The request as a whole makes no sense, by the caller's mistake. Nothing was sent. */
  USAGE(14),
  /** Laneway refuses a name or a combination that would be unsafe or ambiguous. */
  REFUSED(15),
  /** The store can't do this. */
  UNSUPPORTED(16),
  /** The object must be restored from an archive before it can be read. */
  ARCHIVED(17),
  /** The source changed, vanished or can't be read. */
  SOURCE(18),
  /** The destination doesn't take the bytes. */
  DESTINATION(19),
  /** A file operation failed. */
  LOCAL(20),
  /** The call or job was cancelled before it was done. */
  CANCELLED(21),
  /** The engine itself failed, or is newer than this list. */
  INTERNAL(22);

  private final int code;

  ErrorKind(int code) {
    this.code = code;
  }

  /** Returns its number, for records that can't use the name. */
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
