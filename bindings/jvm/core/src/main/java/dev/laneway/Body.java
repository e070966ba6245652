package dev.laneway;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;

/** Bytes that the engine holds for a caller, until they are copied into the caller's buffer. */
final class Body implements AutoCloseable {
  static final Body NONE = new Body(null, 0);

  private final Handle handle;
  private final int length;
  private int taken;

  private Body(Handle handle, int length) {
    this.handle = handle;
    this.length = length;
  }

  /** Reads a body from an answer. The engine keeps no object for an empty body, and sends the number 0. */
  static Body read(Unpacked answer) {
    long number = answer.number();
    int length = answer.count();
    return number == 0 ? NONE : new Body(Handle.quiet(number), length);
  }

  boolean isEmpty() {
    return taken == length;
  }

  /**
   * Copies bytes until the body ends or the buffer is full, and advances the buffer's position. Returns their number.
   */
  int copyTo(ByteBuffer into) {
    int count = Math.min(length - taken, into.remaining());
    if (count == 0) {
      return 0;
    }
    int at = into.position();
    if (into.isDirect()) {
      if (into.isReadOnly()) {
        throw new ReadOnlyBufferException();
      }
      Native.bodyToMemory(handle.number(), taken, into, at, count);
    } else {
      // `array` throws a ReadOnlyBufferException if the buffer is read-only. Every other heap buffer has an array.
      Native.bodyToArray(handle.number(), taken, into.array(), into.arrayOffset() + at, count);
    }
    into.position(at + count);
    taken += count;
    if (isEmpty()) {
      close();
    }
    return count;
  }

  @Override
  public void close() {
    if (handle != null) {
      handle.close();
    }
  }
}
