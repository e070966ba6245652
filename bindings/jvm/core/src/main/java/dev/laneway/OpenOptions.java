package dev.laneway;

import java.util.Objects;

/** How an object is opened for reads. Each setter gives other options. */
public final class OpenOptions {
  /** In the state that it has: one request, which asks for its description. */
  public static final OpenOptions NONE = new OpenOptions(null, null, 0, false);

  private final ObjectMeta known;
  private final String version;
  private final long footer;
  private final boolean inOrder;

  private OpenOptions(ObjectMeta known, String version, long footer, boolean inOrder) {
    this.known = known;
    this.version = version;
    this.footer = footer;
    this.inOrder = inOrder;
  }

  /**
   * What is known of it from a listing, another reader or a table's metadata: nothing is asked of the store at opening. An object that is in another
   * state than this one's {@linkplain ObjectMeta#version() version} by the time of a read fails it, with {@link ErrorKind#PRECONDITION}; where no
   * version is known it is asked for all the same.
   */
  public OpenOptions known(ObjectMeta meta) {
    return new OpenOptions(Objects.requireNonNull(meta, "meta"), version, footer, inOrder);
  }

  /** The same with a size alone, and a version or {@code null}. */
  public OpenOptions known(long size, String version) {
    return known(ObjectMeta.of("", size, version));
  }

  /** Only in this state: an object that was replaced is a failure of kind {@link ErrorKind#PRECONDITION}. */
  public OpenOptions ifVersion(String version) {
    return new OpenOptions(known, Objects.requireNonNull(version, "version"), footer, inOrder);
  }

  /**
   * Fetches the last bytes with the opening request, so many of them or all that there are: reads that lie within cost nothing then. Of a {@linkplain
   * #known(ObjectMeta) known} object they are asked for at opening, by one request.
   */
  public OpenOptions footer(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("a footer of " + bytes + " bytes");
    }
    return new OpenOptions(known, version, bytes, inOrder);
  }

  /**
   * It is going to be read from its beginning to its end: the first 512 KiB come with the opening request in place of a {@linkplain #footer(long)
   * footer}, the whole of most small objects, and what follows is fetched before it is asked for. Of a {@linkplain #known(ObjectMeta) known} object
   * nothing is asked for at opening.
   */
  public OpenOptions inOrder() {
    return new OpenOptions(known, version, footer, true);
  }

  void write(Packed to) {
    to.flag(known != null);
    if (known != null) {
      known.write(to);
    }
    to.maybeText(version).number(footer).flag(inOrder);
  }
}
