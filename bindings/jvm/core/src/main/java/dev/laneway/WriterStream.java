package dev.laneway;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/** An {@link ObjectWriter} as a stream. After a failed write, closing it aborts the object and fails too. */
final class WriterStream extends OutputStream {
  /** Small writes gather to this many bytes before a call out of the JVM hands them to the engine. */
  private static final int GATHERED_BYTES = 32 << 10;

  private final ObjectWriter writer;
  private ByteBuffer gathered;

  /** The failure of a write. The object must not exist then. */
  private Throwable failure;

  WriterStream(ObjectWriter writer) {
    this.writer = writer;
  }

  @Override
  public void write(int one) throws IOException {
    writer.check();
    room(1).put((byte) one);
  }

  @Override
  public void write(byte[] bytes, int at, int length) throws IOException {
    Objects.checkFromIndexSize(at, length, bytes.length);
    writer.check();
    if (length < GATHERED_BYTES) {
      room(length).put(bytes, at, length);
    } else {
      sendGathered();
      send(ByteBuffer.wrap(bytes, at, length));
    }
  }

  /** Does nothing: an object isn't visible before its end. */
  @Override
  public void flush() {}

  @Override
  public void close() throws IOException {
    if (!writer.isOpen()) {
      return;
    }
    try {
      if (failure != null) {
        // This is another exception than the write's, so try-with-resources can add it as suppressed.
        throw new IOException(writer.url() + ": is not written, because a write has failed before", failure);
      }
      sendGathered();
      writer.finish();
    } catch (Throwable failed) {
      leave(failed);
      throw failed;
    } finally {
      gathered = null;
    }
  }

  /** Aborts the object. An interrupt may have caused the failure, and must not prevent this. */
  private void leave(Throwable failed) {
    boolean isInterrupted = Thread.interrupted();
    try {
      // If its completion was begun, nothing is left to abort.
      writer.abort();
    } catch (IOException left) {
      failed.addSuppressed(left);
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Returns room for this many bytes. Sends the gathered bytes first if they don't fit. */
  private ByteBuffer room(int bytes) throws IOException {
    if (gathered == null) {
      gathered = ByteBuffer.allocate(GATHERED_BYTES);
    }
    if (gathered.remaining() < bytes) {
      sendGathered();
    }
    return gathered;
  }

  private void sendGathered() throws IOException {
    if (gathered != null && gathered.position() > 0) {
      gathered.flip();
      send(gathered);
      gathered.clear();
    }
  }

  private void send(ByteBuffer bytes) throws IOException {
    try {
      writer.write(bytes);
    } catch (Throwable failed) {
      failure = failed;
      throw failed;
    }
  }
}
