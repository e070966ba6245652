package dev.laneway;

/** What went wrong, as far as a caller decides by it. Each kind has a number that never changes; new kinds may come. */
public enum ErrorKind {
  /** The object, bucket or path isn't there. */
  NOT_FOUND(1),
  /** The object exists, and was to be written only where there is none. */
  ALREADY_EXISTS(2),
  /** The object isn't in the state that was asked for. */
  PRECONDITION(3),
  /** The object has not changed since the state or time that was named: there is nothing to fetch. */
  NOT_MODIFIED(4),
  /** The store doesn't allow it. */
  PERMISSION(5),
  /** There are no credentials, or the store doesn't accept them. */
  UNAUTHENTICATED(6),
  /** The store asked to slow down until the attempts ran out. */
  THROTTLED(7),
  /** The store failed until the attempts ran out, or its answer makes no sense. */
  SERVER(8),
  /** No answer, or not a whole one. */
  TRANSPORT(9),
  /** The deadline of the call passed. */
  TIMEOUT(10),
  /** Bytes or checksums differ from what they must be. */
  INTEGRITY(11),
  /** The range lies outside the object, or holds no byte. */
  INVALID_RANGE(12),
  /** The store refuses the request, whatever its state. */
  INVALID(13),
  /** The request makes no sense as a whole, and nothing was sent: the caller's mistake. */
  USAGE(14),
  /** A name or a combination that would be unsafe or ambiguous. */
  REFUSED(15),
  /** The store can't do this. */
  UNSUPPORTED(16),
  /** The object has to be restored from an archive before it can be read. */
  ARCHIVED(17),
  /** The source changed, vanished or can't be read. */
  SOURCE(18),
  /** The destination doesn't take what comes. */
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

  /** Its number, for records that can't name it. */
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
