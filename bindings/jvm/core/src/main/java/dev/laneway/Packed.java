package dev.laneway;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Data for the engine, as bytes: numbers of eight bytes in network order, and texts in UTF-8 after their length. */
final class Packed {
  private byte[] bytes = new byte[64];
  private int length;

  Packed number(long value) {
    room(8);
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes[length++] = (byte) (value >>> shift);
    }
    return this;
  }

  Packed flag(boolean value) {
    room(1);
    bytes[length++] = (byte) (value ? 1 : 0);
    return this;
  }

  /**
   * Adds a text, unless it isn't valid Unicode. With a replacement character, the text could be the key of another
   * object.
   */
  Packed text(String text) {
    for (int at = 0; at < text.length(); at++) {
      char one = text.charAt(at);
      if (Character.isSurrogate(one)) {
        boolean isPair =
            Character.isHighSurrogate(one)
                && at + 1 < text.length()
                && Character.isLowSurrogate(text.charAt(at + 1));
        if (!isPair) {
          throw new IllegalArgumentException("the text isn't valid Unicode: half of a surrogate pair at index " + at);
        }
        at++;
      }
    }
    byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
    number(encoded.length);
    room(encoded.length);
    System.arraycopy(encoded, 0, bytes, length, encoded.length);
    length += encoded.length;
    return this;
  }

  /** Adds an argument of the caller. If it is null, the {@link NullPointerException} shows its name. */
  Packed argument(String name, String text) {
    return text(Objects.requireNonNull(text, name));
  }

  Packed maybeText(String text) {
    flag(text != null);
    return text == null ? this : text(text);
  }

  Packed texts(Map<String, String> pairs) {
    number(pairs.size());
    pairs.forEach((name, value) -> text(name).text(value));
    return this;
  }

  /** Adds pairs in their order. Names may repeat. */
  Packed pairs(List<Map.Entry<String, String>> pairs) {
    number(pairs.size());
    pairs.forEach(pair -> text(pair.getKey()).text(pair.getValue()));
    return this;
  }

  byte[] bytes() {
    return Arrays.copyOf(bytes, length);
  }

  private void room(int more) {
    if (length + more > bytes.length) {
      bytes = Arrays.copyOf(bytes, Math.max(length + more, 2 * bytes.length));
    }
  }
}
