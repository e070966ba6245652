package dev.laneway;

import java.util.Objects;

/** Which keys are listed. Each setter gives other options. */
public final class ListOptions {
  /** All of them. */
  public static final ListOptions NONE = new ListOptions(null, 0);

  private final String startAfter;
  private final long limit;

  private ListOptions(String startAfter, long limit) {
    this.startAfter = startAfter;
    this.limit = limit;
  }

  /** Only keys, and prefixes, that sort after this key, which needs not exist. */
  public ListOptions startAfter(String key) {
    return new ListOptions(Objects.requireNonNull(key, "key"), limit);
  }

  /** At most so many of them: no more is asked of the store than that takes. */
  public ListOptions limit(long entries) {
    if (entries <= 0) {
      throw new IllegalArgumentException("a limit of " + entries);
    }
    return new ListOptions(startAfter, entries);
  }

  void write(Packed to) {
    to.maybeText(startAfter).number(limit);
  }
}
