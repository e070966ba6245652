package dev.laneway;

/** The result of a write: facts about the stored object. */
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

  /** Returns the object's size in bytes. */
  public long size() {
    return size;
  }

  /** Returns the object's version, for use in conditions, or {@code null} if the store reports none. */
  public String version() {
    return version;
  }

  /**
   * Returns the name of the checksum that verified the bytes, such as {@code crc32c}. Returns {@code unverified} if the
   * store returned no checksum.
   */
  public String verified() {
    return verified;
  }

  /**
   * Returns whether the store itself enforced the condition. Otherwise another write may have come between the check
   * and this write.
   */
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
