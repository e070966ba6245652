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

  /** Does the same for an object of this size and version. The version may be {@code null}. */
  public OpenOptions known(long size, String version) {
    return known(ObjectMeta.of("", size, version));
  }

  /** Opens only this version. If the object has another version, the call fails with {@link ErrorKind#PRECONDITION}. */
  public OpenOptions ifVersion(String version) {
    return new OpenOptions(known, Objects.requireNonNull(version, "version"), footer, inOrder);
  }

  /**
   * Fetches this many bytes at the object's end with the opening request, or the whole object if it is shorter. Reads
   * of these bytes need no further request. Opening a {@linkplain #known(ObjectMeta) known} object then sends one
   * request instead of none.
   */
  public OpenOptions footer(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("the footer's size must not be negative: " + bytes);
    }
    return new OpenOptions(known, version, bytes, inOrder);
  }

  /**
   * Prepares for a read from beginning to end. The opening request fetches the first 512 KiB, instead of a {@linkplain
   * #footer(long) footer}. Most small objects are then complete. After that, Laneway fetches bytes ahead of the reader.
   * Opening a {@linkplain #known(ObjectMeta) known} object sends no request.
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
