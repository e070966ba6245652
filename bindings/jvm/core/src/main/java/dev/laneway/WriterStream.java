package dev.laneway;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/** An {@link ObjectWriter} as a stream. After a failure its end gives the object up, and is a failure, too. */
final class WriterStream extends OutputStream {
  /** Small writes gather to so many bytes before they are handed to the engine, which is a call out of the JVM. */
  private static final int GATHERED_BYTES = 32 << 10;

  private final ObjectWriter writer;
  private ByteBuffer gathered;

  /** What a write has failed with: there is to be no object. */
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

  /** Does nothing: an object can't be seen before its end. */
  @Override
  public void flush() {}

  @Override
  public void close() throws IOException {
    if (!writer.isOpen()) {
      return;
    }
    try {
      if (failure != null) {
        // Another exception than the write's, to which a try adds this one.
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

  /** Gives the object up; an interrupt is why it may have failed, and not to keep this from being done. */
  private void leave(Throwable failed) {
    boolean isInterrupted = Thread.interrupted();
    try {
      // Of one whose end was begun nothing is left to be given up.
      writer.abort();
    } catch (IOException left) {
      failed.addSuppressed(left);
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Where so many bytes gather, sent before if they don't fit. */
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
