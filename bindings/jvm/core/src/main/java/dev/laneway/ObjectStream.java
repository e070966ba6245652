package dev.laneway;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * An {@link ObjectReader} as a stream that can seek. The engine fetches bytes ahead of the stream's position. Small
 * reads come from a buffer, so that few of them need a native call. Only one thread may use a stream at a time. Closing
 * it closes the reader.
 */
public final class ObjectStream extends InputStream {
  /** The size of the buffer, which is used for smaller reads. */
  private static final int BUFFER_BYTES = 8 << 10;

  private static final byte[] NOTHING = new byte[0];

  private final ObjectReader reader;

  /** The position of the next byte. The reader's own position is after the buffered bytes. */
  private long position;

  private byte[] buffer = NOTHING;
  private int bufferAt;
  private int bufferEnd;

  ObjectStream(ObjectReader reader) {
    this.reader = reader;
  }

  /** Returns the position of the next byte. */
  public long position() {
    return position;
  }

  /** Moves to another position, which may lie beyond the end. Reads return -1 there. Sends no request. */
  public void position(long to) {
    if (to < 0) {
      throw new IllegalArgumentException("the position is before the beginning: " + to);
    }
    long at = bufferAt + (to - position);
    if (at >= 0 && at <= bufferEnd) {
      bufferAt = (int) at;
    } else {
      bufferAt = 0;
      bufferEnd = 0;
    }
    position = to;
  }

  @Override
  public int read() throws IOException {
    if (fill() == 0) {
      return -1;
    }
    position++;
    return buffer[bufferAt++] & 0xff;
  }

  @Override
  public int read(byte[] into, int at, int length) throws IOException {
    Objects.checkFromIndexSize(at, length, into.length);
    return read(ByteBuffer.wrap(into, at, length));
  }

  /** Reads at least one byte, and more if they have arrived and fit into the buffer. Returns -1 at the end. */
  public int read(ByteBuffer into) throws IOException {
    int wanted = into.remaining();
    if (wanted == 0) {
      return 0;
    }
    int read;
    if (bufferAt < bufferEnd || wanted < BUFFER_BYTES) {
      read = Math.min(wanted, fill());
      into.put(buffer, bufferAt, read);
      bufferAt += read;
    } else {
      read = next(into);
    }
    position += read;
    return read == 0 ? -1 : read;
  }

  @Override
  public long skip(long bytes) {
    long most = Math.max(0, reader.size() - position);
    long skipped = Math.max(0, Math.min(bytes, most));
    position(position + skipped);
    return skipped;
  }

  /** Returns how many bytes of the object follow, even if they have not arrived yet. */
  @Override
  public int available() {
    return (int) Math.max(0, Math.min(Integer.MAX_VALUE, reader.size() - position));
  }

  /** Frees bytes that were read ahead, and abandons running fetches. Reading continues at the same position. */
  public void unbuffer() {
    buffer = NOTHING;
    bufferAt = 0;
    bufferEnd = 0;
    reader.dropAhead();
  }

  @Override
  public void close() {
    reader.close();
  }

  @Override
  public String toString() {
    return "ObjectStream[" + reader + ", position=" + position + "]";
  }

  /** Fills the buffer if it is empty. Returns how many unread bytes it then contains. */
  private int fill() throws IOException {
    if (bufferAt == bufferEnd) {
      if (buffer.length == 0) {
        buffer = new byte[BUFFER_BYTES];
      }
      bufferAt = 0;
      bufferEnd = 0;
      bufferEnd = next(ByteBuffer.wrap(buffer));
    }
    return bufferEnd - bufferAt;
  }

  private int next(ByteBuffer into) throws IOException {
    if (reader.position() != position) {
      reader.position(position);
    }
    return Math.max(0, reader.read(into));
  }
}
