package dev.laneway;

import java.util.Objects;

/**
 * Options for reading an object: the range of bytes, and conditions on the object's version. Each setter returns new
 * options.
 */
public final class GetOptions {
  /** Reads all bytes of the current version. */
  public static final GetOptions NONE = new GetOptions(-1, -1, null, null);

  private final long start;
  private final long end;
  private final String version;
  private final String unless;

  private GetOptions(long start, long end, String version, String unless) {
    this.start = start;
    this.end = end;
    this.version = version;
    this.unless = unless;
  }

  /** Reads the bytes from {@code start} to the one before {@code end}. A shorter object ends the range earlier. */
  public GetOptions range(long start, long end) {
    if (start < 0 || end <= start) {
      throw new IllegalArgumentException("the range " + start + ".." + end + " is empty or negative");
    }
    return new GetOptions(start, end, version, unless);
  }

  /** Reads the bytes from {@code start} on. */
  public GetOptions from(long start) {
    return range(start, Long.MAX_VALUE);
  }

  /** Reads this many bytes at the object's end, or the whole object if it is shorter. */
  public GetOptions last(long bytes) {
    if (bytes <= 0) {
      throw new IllegalArgumentException("the number of last bytes must be positive: " + bytes);
    }
    return new GetOptions(-1, bytes, version, unless);
  }

  /** Reads only this version. If the object has another version, the call fails with {@link ErrorKind#PRECONDITION}. */
  public GetOptions ifVersion(String version) {
    return new GetOptions(start, end, Objects.requireNonNull(version, "version"), unless);
  }

  /**
   * Reads only a version other than this one. If the object still has this version, the call fails with {@link
   * ErrorKind#NOT_MODIFIED}.
   */
  public GetOptions unlessVersion(String version) {
    return new GetOptions(start, end, this.version, Objects.requireNonNull(version, "version"));
  }

  void write(Packed to) {
    to.number(start).number(end).maybeText(version).maybeText(unless);
  }
}
