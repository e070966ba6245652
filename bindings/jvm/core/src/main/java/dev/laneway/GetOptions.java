package dev.laneway;

import java.util.Objects;

/** Which bytes of an object are read, and in which state it has to be. Each setter gives other options. */
public final class GetOptions {
  /** All bytes, in the state that it has. */
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

  /** The bytes from {@code start} to before {@code end}, cut off at the object's end. */
  public GetOptions range(long start, long end) {
    if (start < 0 || end <= start) {
      throw new IllegalArgumentException("the range " + start + ".." + end + " holds no byte");
    }
    return new GetOptions(start, end, version, unless);
  }

  /** The bytes from {@code start} on. */
  public GetOptions from(long start) {
    return range(start, Long.MAX_VALUE);
  }

  /** The last bytes, so many of them or all that there are. */
  public GetOptions last(long bytes) {
    if (bytes <= 0) {
      throw new IllegalArgumentException("the last " + bytes + " bytes");
    }
    return new GetOptions(-1, bytes, version, unless);
  }

  /** Only in this state: else a failure of kind {@link ErrorKind#PRECONDITION}. */
  public GetOptions ifVersion(String version) {
    return new GetOptions(start, end, Objects.requireNonNull(version, "version"), unless);
  }

  /** Only in another state than this: else a failure of kind {@link ErrorKind#NOT_MODIFIED}. */
  public GetOptions unlessVersion(String version) {
    return new GetOptions(start, end, this.version, Objects.requireNonNull(version, "version"));
  }

  void write(Packed to) {
    to.number(start).number(end).maybeText(version).maybeText(unless);
  }
}
