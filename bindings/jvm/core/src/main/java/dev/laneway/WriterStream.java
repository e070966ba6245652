package dev.laneway;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * An {@link ObjectWriter} as a stream. {@link #complete} publishes the object. Closing the stream without {@code
 * complete} aborts the object. So if an exception leaves a try-with-resources statement, no partial object is
 * published. After a failed write, closing the stream aborts the object and fails too.
 *
 * <pre>{@code
 * try (WriterStream out = writer.stream()) {
 *   out.write(bytes);
 *   out.complete();
 * }
 * }</pre>
 */
public final class WriterStream extends OutputStream {
  /** Small writes are collected until they have this many bytes. One native call then passes them to the engine. */
  private static final int GATHERED_BYTES = 32 << 10;

  private final ObjectWriter writer;

  /** True if closing the stream completes the object. */
  private final boolean closeCompletes;

  private ByteBuffer gathered;

  /** The failure of a write, after which the object must not be created. */
  private Throwable failure;

  WriterStream(ObjectWriter writer, boolean closeCompletes) {
    this.writer = writer;
    this.closeCompletes = closeCompletes;
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

  /** Does nothing, because an object becomes visible only when it is complete. */
  @Override
  public void flush() {}

  /**
   * Completes the object, as {@link ObjectWriter#finish} does, and closes the stream.
   *
   * @throws IOException if a write has failed, or if the object can't be completed; it is aborted then
   */
  public Written complete() throws IOException {
    if (failure == null) {
      writer.check();
    }
    return ended(true);
  }

  /**
   * Aborts the object, unless it was completed.
   *
   * @throws IOException if a write has failed before
   */
  @Override
  public void close() throws IOException {
    if (writer.isOpen()) {
      ended(closeCompletes);
    }
  }

  private Written ended(boolean completes) throws IOException {
    try {
      if (failure != null) {
        // Throw a new exception. If it were the exception of the write itself, try-with-resources couldn't add it as
        // suppressed.
        throw new IOException(writer.url() + ": is not written, because a write has failed before", failure);
      }
      if (!completes) {
        EngineLog.aborted(writer.url());
        writer.abort();
        return null;
      }
      sendGathered();
      return writer.finish();
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
      // If the object's completion was begun, this call does nothing.
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
