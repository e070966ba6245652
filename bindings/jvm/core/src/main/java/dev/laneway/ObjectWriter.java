package dev.laneway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.WritableByteChannel;
import java.util.Objects;

/**
 * Creates an object from the bytes that the caller writes. Nothing is visible in the store before {@link #finish} has
 * succeeded. If the writer is closed or aborted before that, nothing stays in the store. Only one thread may use it at
 * a time.
 */
public final class ObjectWriter implements WritableByteChannel {
  private final String url;
  private final Handle handle;
  private boolean isOver;

  /**
   * Set while a write is running. It stays set after a failed write, because it is unknown how many bytes the engine
   * accepted.
   */
  private boolean hasFailed;

  private ObjectWriter(String url, Handle handle) {
    this.url = url;
    this.handle = handle;
  }

  static ObjectWriter of(Bucket bucket, Handle handle, String key, PutOptions options)
      throws LanewayException {
    Packed packed = new Packed().argument("key", key);
    Objects.requireNonNull(options, "options").write(packed);
    long number = Engine.now(Native.writer(handle.number(), packed.bytes())).number();
    String url = bucket.url() + key;
    return new ObjectWriter(url, Handle.watched(number, "a writer of " + url));
  }

  /**
   * Writes all remaining bytes. Waits while too many bytes are being sent. After a write that failed or was
   * interrupted, the object can only be aborted.
   *
   * @return the number of bytes
   */
  @Override
  public int write(ByteBuffer bytes) throws IOException {
    Objects.requireNonNull(bytes, "bytes");
    check();
    int length = bytes.remaining();
    hasFailed = true;
    // If the bytes fit into the current part, the engine accepts them without waiting.
    int taken = Native.writeNow(handle.number(), bytes, length);
    while (taken < length) {
      ByteBuffer rest = bytes.duplicate();
      rest.position(bytes.position() + taken);
      taken += Engine.lend(Native.WRITE, handle, new Packed(), rest, Unpacked::count).await();
    }
    bytes.position(bytes.position() + length);
    hasFailed = false;
    return length;
  }

  /**
   * Completes the object: sends the rest, then compares the stored object with the sent bytes. If this fails or is
   * interrupted, the store may have the object nevertheless, because the answer to the last request may be lost. Look
   * at the object's metadata to find out.
   */
  public Written finish() throws IOException {
    check();
    isOver = true;
    try {
      return Engine.begin(Native.FINISH, handle, new Packed(), Written::read).await();
    } finally {
      handle.close();
    }
  }

  /** Aborts the object, and waits until the store has removed its unfinished parts. */
  public void abort() throws IOException {
    if (isOver) {
      return;
    }
    isOver = true;
    try {
      Engine.begin(Native.ABORT, handle, new Packed(), answer -> null).await();
    } finally {
      handle.close();
    }
  }

  /**
   * Returns a stream that gathers small writes. Only {@link WriterStream#complete} publishes the object. If the stream
   * is closed earlier, the object is aborted.
   */
  public WriterStream stream() {
    return new WriterStream(this, false);
  }

  /**
   * Returns a stream for code that can only close it. Its {@code close} completes the object, unless a write has failed.
   * The stream doesn't learn of exceptions in other code. So if an exception leaves a try-with-resources statement, the
   * stream publishes the bytes that were written, unless {@link #abort} is called first. If your code can call {@link
   * WriterStream#complete}, use {@link #stream}, also below a compressing stream:
   *
   * <pre>{@code
   * try (WriterStream out = writer.stream(); GZIPOutputStream gz = new GZIPOutputStream(out)) {
   *   gz.write(bytes);
   *   gz.finish();
   *   out.complete();
   * }
   * }</pre>
   */
  public WriterStream closingStream() {
    return new WriterStream(this, true);
  }

  @Override
  public boolean isOpen() {
    return !isOver;
  }

  /** Aborts an object that was not finished. */
  @Override
  public void close() throws IOException {
    abort();
  }

  String url() {
    return url;
  }

  /** @throws IOException if the writer is closed, or if a write has failed */
  void check() throws IOException {
    if (isOver) {
      throw new ClosedChannelException();
    }
    if (hasFailed) {
      throw new IOException(url + ": a write has failed, so the object can only be aborted");
    }
  }

  @Override
  public String toString() {
    return "ObjectWriter[" + url + "]";
  }
}
