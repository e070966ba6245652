package dev.laneway;

/**
 * A range of an object.
 *
 * @param position the offset of its first byte
 * @param length its number of bytes
 */
public record Range(long position, int length) {
  public Range {
    if (position < 0 || length < 0 || position > Long.MAX_VALUE - length) {
      throw new IllegalArgumentException(
          "a range of " + length + " bytes from " + position + " is negative or too long");
    }
  }

  /** Returns the offset after its last byte. */
  public long end() {
    return position + length;
  }
}
