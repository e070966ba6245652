package dev.laneway;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Data from the engine, in the form of {@link Packed}. */
final class Unpacked {
  private final ByteBuffer bytes;
  private Throwable begun;

  Unpacked(byte[] bytes) {
    this(ByteBuffer.wrap(bytes));
  }

  private Unpacked(ByteBuffer bytes) {
    this.bytes = bytes;
  }

  /** Returns the stack trace of the start of the answered call, or {@code null} if tracing is off. */
  Throwable begun() {
    return begun;
  }

  void begun(Throwable begun) {
    this.begun = begun;
  }

  boolean hasMore() {
    return bytes.hasRemaining();
  }

  long number() {
    return bytes.getLong();
  }

  int count() {
    return Math.toIntExact(bytes.getLong());
  }

  boolean flag() {
    return bytes.get() != 0;
  }

  String text() {
    int length = count();
    int at = bytes.position();
    bytes.position(at + length);
    return new String(bytes.array(), bytes.arrayOffset() + at, length, StandardCharsets.UTF_8);
  }

  String maybeText() {
    return flag() ? text() : null;
  }

  Instant maybeTime() {
    return flag() ? Instant.ofEpochSecond(number(), number()) : null;
  }

  Map<String, String> texts() {
    int count = count();
    if (count == 0) {
      return Map.of();
    }
    Map<String, String> pairs = new TreeMap<>();
    for (int at = 0; at < count; at++) {
      pairs.put(text(), text());
    }
    return Collections.unmodifiableMap(pairs);
  }

  Map<String, Long> numbers() {
    Map<String, Long> named = new TreeMap<>();
    for (int left = count(); left > 0; left--) {
      named.put(text(), number());
    }
    return named;
  }

  /** Returns a value of JSON: null, a Boolean, Long, Double or String, a list, or a map. */
  Object value() {
    int kind = count();
    return switch (kind) {
      case 0 -> null;
      case 1 -> flag();
      case 2 -> number();
      case 3 -> Double.longBitsToDouble(number());
      case 4 -> text();
      case 5 -> {
        List<Object> list = new ArrayList<>();
        for (int left = count(); left > 0; left--) {
          list.add(value());
        }
        yield list;
      }
      case 6 -> {
        Map<String, Object> fields = new TreeMap<>();
        for (int left = count(); left > 0; left--) {
          fields.put(text(), value());
        }
        yield fields;
      }
      default -> throw new IllegalStateException("a value of an unknown kind");
    };
  }

  /** Returns the data that follows its own length. */
  Unpacked part() {
    int length = count();
    ByteBuffer part = bytes.slice(bytes.position(), length);
    bytes.position(bytes.position() + length);
    return new Unpacked(part);
  }

  LanewayException failure() {
    int code = count();
    String text = text();
    String url = maybeText();
    // A message without a URL may begin with an option's name. With a URL, it begins with the name of an object or file.
    String message = url == null ? OptionNames.ofSetting(text) : OptionNames.inJava(text);
    int status = count();
    String serviceCode = maybeText();
    int attempts = count();
    return new LanewayException(
        ErrorKind.of(code), message, url, status, serviceCode, attempts, flag());
  }
}
