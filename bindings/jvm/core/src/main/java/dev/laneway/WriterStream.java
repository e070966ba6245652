package dev.laneway;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/** An {@link ObjectWriter} as a stream. After a failure its end gives the object up. */
final class WriterStream extends OutputStream {
  /** Small writes gather to so many bytes before they are handed to the engine, which is a call out of the JVM. */
  private static final int GATHERED_BYTES = 32 << 10;

  private final ObjectWriter writer;
  private ByteBuffer gathered;
  private boolean hasFailed;

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
    boolean isDone = false;
    try {
      if (!hasFailed) {
        sendGathered();
        writer.finish();
        isDone = true;
      }
    } finally {
      gathered = null;
      if (!isDone) {
        // Of one whose end was begun nothing is left to be given up.
        writer.abort();
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
    boolean isDone = false;
    try {
      writer.write(bytes);
      isDone = true;
    } finally {
      hasFailed |= !isDone;
    }
  }
}
