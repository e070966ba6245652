package dev.laneway;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.WritableByteChannel;

/**
 * Writes an object from the bytes that are put into it. Nothing can be seen in the store before {@link #finish} has ended well; one that is closed or aborted
 * before leaves nothing behind. One thread uses it at a time.
 */
public final class ObjectWriter implements WritableByteChannel {
  private final String url;
  private final Handle handle;
  private boolean isOver;

  /** Set while a write is under way, and for good by one that failed: how many of its bytes were taken is not known. */
  private boolean hasFailed;

  private ObjectWriter(String url, Handle handle) {
    this.url = url;
    this.handle = handle;
  }

  static ObjectWriter of(Bucket bucket, Handle handle, String key, PutOptions options)
      throws LanewayException {
    Packed packed = new Packed().text(key);
    options.write(packed);
    long number = Engine.now(Native.writer(handle.number(), packed.bytes())).number();
    String url = bucket.url() + key;
    return new ObjectWriter(url, Handle.watched(number, "a writer of " + url));
  }

  /**
   * Puts all remaining bytes in. Waits while too many are on their way. After one that failed or was interrupted, the object can only be given up.
   *
   * @return how many they were
   */
  @Override
  public int write(ByteBuffer bytes) throws IOException {
    check();
    int length = bytes.remaining();
    hasFailed = true;
    // Those that fit into the part that gathers are taken at once.
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

  /** Ends the object: sends what is left, and compares what the store then has with what was sent. */
  public Written finish() throws IOException {
    check();
    isOver = true;
    try {
      return Engine.begin(Native.FINISH, handle, new Packed(), Written::read).await();
    } finally {
      handle.close();
    }
  }

  /** Gives the object up, and waits until nothing unfinished is left of it in the store. */
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

  /** The same as a stream, which gathers small writes, and whose {@code close} finishes the object; where a write has failed, it gives it up and fails. */
  public OutputStream stream() {
    return new WriterStream(this);
  }

  @Override
  public boolean isOpen() {
    return !isOver;
  }

  /** Gives up an object that was not finished. */
  @Override
  public void close() throws IOException {
    abort();
  }

  String url() {
    return url;
  }

  /** @throws IOException where it takes no more */
  void check() throws IOException {
    if (isOver) {
      throw new ClosedChannelException();
    }
    if (hasFailed) {
      throw new IOException(url + ": a write has failed, so that the object can only be given up");
    }
  }

  @Override
  public String toString() {
    return "ObjectWriter[" + url + "]";
  }
}
