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
 * An object that is read from beginning to end. Laneway fetches a large object ahead of the reader, over several
 * connections if that is faster. All bytes are of one version. If a whole object is read, Laneway verifies its checksum
 * before {@link #read} returns -1. Only one thread may use a download at a time. Closing it ends the transfer.
 */
public final class Download implements ReadableByteChannel {
  /** The maximum length of a JVM array in bytes. */
  static final int ARRAY_BYTES_MAX = Integer.MAX_VALUE - 8;

  /** The minimum length of the next array, if an object turns out to be longer than reported. */
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

  /** Returns the metadata of the whole object, from the answer that also brings the first bytes. */
  public ObjectMeta meta() {
    return meta;
  }

  /** Returns the offset of the first byte that is read. */
  public long start() {
    return start;
  }

  /** Returns the offset after the last byte that is read. */
  public long end() {
    return end;
  }

  /** Reads at least one byte, and more if they have arrived and fit into the buffer. Returns -1 at the end. */
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
          throw new EOFException(url + ": the download ended, but " + left + " bytes are missing");
        }
        return -1;
      }
      body = next;
    }
    int read = body.copyTo(into);
    left -= read;
    return read;
  }

  /** Reads the remaining bytes, and closes the download. */
  public byte[] bytes() throws IOException {
    try (this) {
      if (left > ARRAY_BYTES_MAX) {
        throw tooLarge(url, left);
      }
      ByteBuffer all = ByteBuffer.allocate((int) left);
      // Read until -1 comes, because only then the checksum is verified. The object may be longer than expected: if the
      // first answer reported a wrong length, Laneway requests the object again.
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

  /** Returns the length of the next array, for an object that is longer than {@code bytes}. */
  static int larger(String url, int bytes) throws LanewayException {
    if (bytes == ARRAY_BYTES_MAX) {
      throw tooLarge(url, bytes + 1L);
    }
    return (int) Math.min(ARRAY_BYTES_MAX, Math.max(GROWN_BYTES, 2L * bytes));
  }

  private static LanewayException tooLarge(String url, long bytes) {
    return new LanewayException(
        ErrorKind.USAGE, url + ": " + bytes + " bytes are too many for one array; read them in parts");
  }

  /** Returns the download as a stream. Closing the stream closes the download. */
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
