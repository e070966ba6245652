package dev.laneway;

/** What a store has once an object was written. */
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

  /** Its size in bytes. */
  public long size() {
    return size;
  }

  /** Its state, as conditions take it; {@code null} where the store tells none. */
  public String version() {
    return version;
  }

  /** What its bytes were compared by, such as {@code crc32c}; {@code unverified} where the store gave nothing to compare. */
  public String verified() {
    return verified;
  }

  /** Whether the store itself kept the condition that was asked for, so that no other writer could come between. */
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
