package dev.laneway.iceberg;

import dev.laneway.ErrorKind;
import dev.laneway.LanewayException;
import dev.laneway.ObjectWriter;
import dev.laneway.WriterStream;
import java.io.IOException;
import org.apache.iceberg.io.PositionOutputStream;

/** Writes a file, which appears only when this stream is closed. After a failed write, nothing is created. */
final class LanewayOutputStream extends PositionOutputStream {
  private final String location;
  private final ObjectWriter writer;
  private final WriterStream out;
  private final FileMetrics metrics;
  private long position;

  LanewayOutputStream(String location, ObjectWriter writer, FileMetrics metrics) {
    this.location = location;
    this.writer = writer;
    this.out = writer.stream();
    this.metrics = metrics;
  }

  @Override
  public long getPos() {
    return position;
  }

  @Override
  public void write(int one) throws IOException {
    check();
    out.write(one);
    position++;
    metrics.wrote(1);
  }

  @Override
  public void write(byte[] bytes, int at, int length) throws IOException {
    check();
    out.write(bytes, at, length);
    position += length;
    metrics.wrote(length);
  }

  /** Does nothing, because an object becomes visible only when it is complete. */
  @Override
  public void flush() {}

  @Override
  public void close() throws IOException {
    if (!writer.isOpen()) {
      return;
    }
    try {
      out.complete();
    } catch (LanewayException failed) {
      if (failed.kind() == ErrorKind.ALREADY_EXISTS) {
        throw Failures.of(location, failed);
      }
      throw failed;
    }
  }

  @Override
  public String toString() {
    return "LanewayOutputStream[" + location + "]";
  }

  private void check() throws IOException {
    if (!writer.isOpen()) {
      throw new IOException(location + ": its stream is closed");
    }
  }
}
