package dev.laneway;

import java.util.Objects;

/** Options for listing keys. Each setter returns new options. */
public final class ListOptions {
  /** Lists all keys. */
  public static final ListOptions NONE = new ListOptions(null, 0);

  private final String startAfter;
  private final long limit;

  private ListOptions(String startAfter, long limit) {
    this.startAfter = startAfter;
    this.limit = limit;
  }

  /** Lists only keys and prefixes that sort after this key. The key need not exist. */
  public ListOptions startAfter(String key) {
    return new ListOptions(Objects.requireNonNull(key, "key"), limit);
  }

  /** Lists at most this many entries. Laneway requests no more from the store than needed. */
  public ListOptions limit(long entries) {
    if (entries <= 0) {
      throw new IllegalArgumentException("the limit must be positive: " + entries);
    }
    return new ListOptions(startAfter, entries);
  }

  void write(Packed to) {
    to.maybeText(startAfter).number(limit);
  }
}
