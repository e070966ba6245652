package dev.laneway;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;

/** An {@link ObjectWriter} as a stream. After a failure its end gives the object up. */
final class WriterStream extends OutputStream {
  private final ObjectWriter writer;
  private boolean hasFailed;

  WriterStream(ObjectWriter writer) {
    this.writer = writer;
  }

  @Override
  public void write(int one) throws IOException {
    write(new byte[] {(byte) one}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int at, int length) throws IOException {
    boolean isDone = false;
    try {
      writer.write(ByteBuffer.wrap(bytes, at, length));
      isDone = true;
    } finally {
      hasFailed |= !isDone;
    }
  }

  @Override
  public void close() throws IOException {
    if (!writer.isOpen()) {
      return;
    }
    if (hasFailed) {
      writer.abort();
    } else {
      writer.finish();
    }
  }
}
