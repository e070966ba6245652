package dev.laneway;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;

/**
 * An object that is read in order. A large one is fetched ahead over as many connections as pay off, all of one
 * version. A whole object's checksum is compared before the end is reported. One thread uses it at a time. Closing it
 * ends the reading.
 */
public final class Download implements ReadableByteChannel {
  /** The most bytes of a JVM array. */
  static final int ARRAY_BYTES_MAX = Integer.MAX_VALUE - 8;

  /** The least room that is added if an object is longer than reported. */
  private static final int GROWN_BYTES = 64 << 10;

  private final String url;
  private final Handle handle;
  private final ObjectMeta meta;
  private final long start;
  private final long end;
  private long left;
  private Body body = Body.NONE;

  private Download(String url, Handle handle, ObjectMeta meta, long start, long end) {
    this.url = url;
    this.handle = handle;
    this.meta = meta;
    this.start = start;
    this.end = end;
    this.left = end - start;
  }

  static Download read(String url, Unpacked answer) {
    Handle handle = Handle.watched(answer, "a download of " + url);
    ObjectMeta meta = ObjectMeta.read(answer);
    return new Download(url, handle, meta, answer.number(), answer.number());
  }

  /** Returns the metadata of the whole object, as it came with the bytes. */
  public ObjectMeta meta() {
    return meta;
  }

  /** Returns the offset of the first byte that is read. */
  public long start() {
    return start;
  }

  /** Returns the offset behind the last byte that is read. */
  public long end() {
    return end;
  }

  /** Reads the next bytes, as many as are there and fit. Returns -1 at the end. */
  @Override
  public int read(ByteBuffer into) throws IOException {
    if (!handle.isOpen()) {
      throw new ClosedChannelException();
    }
    if (!into.hasRemaining()) {
      return 0;
    }
    while (body.isEmpty()) {
      body.close();
      Body next = Engine.begin(Native.CHUNK, handle, new Packed(), Body::read).await();
      if (next.isEmpty()) {
        if (left > 0) {
          throw new EOFException(url + ": " + left + " bytes have not come");
        }
        return -1;
      }
      body = next;
    }
    int read = body.copyTo(into);
    left -= read;
    return read;
  }

  /** Reads all bytes that have not been read yet, and closes this. */
  public byte[] bytes() throws IOException {
    try (this) {
      if (left > ARRAY_BYTES_MAX) {
        throw tooLarge(url, left);
      }
      ByteBuffer all = ByteBuffer.allocate((int) left);
      // Read to the end, which verifies the checksum. The first answer may have reported a wrong length, and the object
      // that is then requested again may be longer.
      ByteBuffer beyond = ByteBuffer.allocate(1);
      while (read(all.hasRemaining() ? all : beyond) >= 0) {
        if (!beyond.hasRemaining()) {
          all = ByteBuffer.allocate(larger(url, all.capacity())).put(all.flip()).put(beyond.flip());
          beyond.clear();
        }
      }
      return all.hasRemaining() ? Arrays.copyOf(all.array(), all.position()) : all.array();
    }
  }

  /** Returns the new size for an object that is longer than {@code bytes}. */
  static int larger(String url, int bytes) throws LanewayException {
    if (bytes == ARRAY_BYTES_MAX) {
      throw tooLarge(url, bytes + 1L);
    }
    return (int) Math.min(ARRAY_BYTES_MAX, Math.max(GROWN_BYTES, 2L * bytes));
  }

  private static LanewayException tooLarge(String url, long bytes) {
    return new LanewayException(ErrorKind.USAGE, url + ": " + bytes + " bytes fit into no array");
  }

  /** Returns this as a stream, whose {@code close} closes this. */
  public InputStream stream() {
    return Channels.newInputStream(this);
  }

  @Override
  public boolean isOpen() {
    return handle.isOpen();
  }

  @Override
  public void close() {
    body.close();
    body = Body.NONE;
    handle.close();
  }

  @Override
  public String toString() {
    return "Download[" + url + "]";
  }
}
