package dev.laneway;

/**
 * A range of an object.
 *
 * @param position its first byte
 * @param length its number of bytes
 */
public record Range(long position, int length) {
  public Range {
    if (position < 0 || length < 0 || position > Long.MAX_VALUE - length) {
      throw new IllegalArgumentException("the range of " + length + " bytes from " + position);
    }
  }

  /** Returns the offset behind its last byte. */
  public long end() {
    return position + length;
  }
}
