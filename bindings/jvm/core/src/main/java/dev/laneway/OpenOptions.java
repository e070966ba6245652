package dev.laneway;

import java.util.Objects;

/** Options for opening an object. Each setter returns new options. */
public final class OpenOptions {
  /** Opens the current version, with one request for its metadata. */
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
   * Opens the version that a listing, another reader or a table's metadata described. Opening then sends no request. If
   * the object has another {@linkplain ObjectMeta#version() version} at the time of a read, the read fails with {@link
   * ErrorKind#PRECONDITION}. Metadata without a version doesn't save the request.
   */
  public OpenOptions known(ObjectMeta meta) {
    return new OpenOptions(Objects.requireNonNull(meta, "meta"), version, footer, inOrder);
  }

  /** Does the same with a size, and a version or {@code null}. */
  public OpenOptions known(long size, String version) {
    return known(ObjectMeta.of("", size, version));
  }

  /** Opens only this version. An object that was replaced is a failure of kind {@link ErrorKind#PRECONDITION}. */
  public OpenOptions ifVersion(String version) {
    return new OpenOptions(known, Objects.requireNonNull(version, "version"), footer, inOrder);
  }

  /**
   * Fetches this many last bytes with the opening request, or all if there are fewer. Reads within them cost nothing.
   * For a {@linkplain #known(ObjectMeta) known} object, opening then takes one request.
   */
  public OpenOptions footer(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("a footer of " + bytes + " bytes");
    }
    return new OpenOptions(known, version, bytes, inOrder);
  }

  /**
   * Prepares for a read from beginning to end. The first 512 KiB come with the opening request, in place of a
   * {@linkplain #footer(long) footer}. That is the whole of most small objects. The bytes behind them are fetched
   * ahead. For a {@linkplain #known(ObjectMeta) known} object, opening sends no request.
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
