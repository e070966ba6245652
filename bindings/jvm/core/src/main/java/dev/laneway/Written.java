package dev.laneway;

/** A stored object after a write. */
public final class Written {
  private final long size;
  private final String version;
  private final String verified;
  private final boolean isAtomic;

  private Written(long size, String version, String verified, boolean isAtomic) {
    this.size = size;
    this.version = version;
    this.verified = verified;
    this.isAtomic = isAtomic;
  }

  /** Returns its size in bytes. */
  public long size() {
    return size;
  }

  /** Returns its version, which conditions accept, or {@code null} if the store reports none. */
  public String version() {
    return version;
  }

  /**
   * Returns the checksum that verified its bytes, such as {@code crc32c}, or {@code unverified} if the store gave none.
   */
  public String verified() {
    return verified;
  }

  /** Returns whether the store itself enforced the condition, so that no other writer could come between. */
  public boolean isAtomic() {
    return isAtomic;
  }

  @Override
  public String toString() {
    return "Written[size=" + size + ", version=" + version + ", verified=" + verified + "]";
  }

  static Written read(Unpacked from) {
    return new Written(from.number(), from.maybeText(), from.text(), from.flag());
  }
}
