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
 * An object that is read in order. Of a large one bytes are fetched ahead over as many connections as pay, all of one version, and a whole object's checksum is
 * compared before its end is told. One thread uses it at a time; closed, it is read no further.
 */
public final class Download implements ReadableByteChannel {
  /** What a JVM's arrays hold at most. */
  static final int ARRAY_BYTES_MAX = Integer.MAX_VALUE - 8;

  /** Where an object is longer than was told, there is room for so many bytes at least. */
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

  /** What the store told of the whole object with its bytes. */
  public ObjectMeta meta() {
    return meta;
  }

  /** The first of the object's bytes that come. */
  public long start() {
    return start;
  }

  /** The byte behind the last one that comes. */
  public long end() {
    return end;
  }

  /** The next bytes, as many as are there and fit; -1 at the end. */
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

  /** All bytes that have not been read yet. Closes it. */
  public byte[] bytes() throws IOException {
    try (this) {
      if (left > ARRAY_BYTES_MAX) {
        throw tooLarge(url, left);
      }
      ByteBuffer all = ByteBuffer.allocate((int) left);
      // Its end is read, too, which tells whether the checksum is right. A first answer may have told a wrong length, and what was then asked for again
      // be longer.
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

  /** How much is taken for an object that is longer than so many bytes. */
  static int larger(String url, int bytes) throws LanewayException {
    if (bytes == ARRAY_BYTES_MAX) {
      throw tooLarge(url, bytes + 1L);
    }
    return (int) Math.min(ARRAY_BYTES_MAX, Math.max(GROWN_BYTES, 2L * bytes));
  }

  private static LanewayException tooLarge(String url, long bytes) {
    return new LanewayException(ErrorKind.USAGE, url + ": " + bytes + " bytes fit into no array");
  }

  /** The same as a stream, whose {@code close} closes this. */
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
