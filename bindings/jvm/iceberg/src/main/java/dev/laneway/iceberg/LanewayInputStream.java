package dev.laneway.iceberg;

import dev.laneway.ObjectReader;
import dev.laneway.ObjectStream;
import dev.laneway.Range;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntFunction;
import org.apache.iceberg.io.FileRange;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Reads a file, all bytes of one version. Callers can read in order (the library then reads ahead), at positions, or
 * several ranges together. Closing the stream ends running reads.
 */
final class LanewayInputStream extends SeekableInputStream implements RangeReadable {
  private final String location;
  private final ObjectReader reader;
  private final ObjectStream inOrder;
  private final FileMetrics metrics;

  LanewayInputStream(String location, ObjectReader reader, FileMetrics metrics) {
    this.location = location;
    this.reader = reader;
    this.inOrder = reader.stream();
    this.metrics = metrics;
  }

  long length() {
    return reader.size();
  }

  @Override
  public long getPos() {
    return inOrder.position();
  }

  /** Moves to another position. Sends no request. */
  @Override
  public void seek(long to) throws IOException {
    check();
    if (to < 0) {
      throw new IllegalArgumentException("the position is before the beginning of " + location + ": " + to);
    }
    inOrder.position(to);
  }

  @Override
  public int read() throws IOException {
    check();
    int read = inOrder.read();
    if (read >= 0) {
      metrics.read(1);
    }
    return read;
  }

  @Override
  public int read(byte[] into, int at, int length) throws IOException {
    check();
    return counted(inOrder.read(into, at, length));
  }

  @Override
  public long skip(long bytes) throws IOException {
    check();
    return inOrder.skip(bytes);
  }

  @Override
  public int available() throws IOException {
    check();
    return inOrder.available();
  }

  @Override
  public void readFully(long position, byte[] into, int at, int length) throws IOException {
    check();
    Objects.checkFromIndexSize(at, length, into.length);
    reader.readFully(position, ByteBuffer.wrap(into, at, length));
    counted(length);
  }

  @Override
  public int readTail(byte[] into, int at, int length) throws IOException {
    check();
    Objects.checkFromIndexSize(at, length, into.length);
    int there = (int) Math.min(length, reader.size());
    readFully(reader.size() - there, into, at, there);
    return there;
  }

  /**
   * Reads ranges together, with one request for neighbouring ranges where that is faster. The future of a range
   * completes as soon as the range has arrived, with a buffer of its own from {@code allocate}.
   *
   * @throws EOFException If a range reaches beyond the file's end. Nothing is read then.
   * @throws IllegalArgumentException If ranges overlap.
   */
  @Override
  public void readVectored(List<FileRange> ranges, IntFunction<ByteBuffer> allocate) throws IOException {
    check();
    List<FileRange> asked = new ArrayList<>();
    List<Range> wanted = new ArrayList<>();
    long bytes = 0;
    for (FileRange range : RangeReadable.sortRanges(ranges)) {
      if (range.length() == 0) {
        range.byteBuffer().complete(allocate.apply(0));
      } else {
        asked.add(range);
        wanted.add(new Range(range.offset(), range.length()));
        bytes += range.length();
      }
    }
    List<CompletableFuture<ByteBuffer>> coming = reader.readRanges(wanted, allocate);
    // The bytes count for the thread that requests them, even if another thread receives them.
    counted(bytes);
    for (int i = 0; i < asked.size(); i++) {
      CompletableFuture<ByteBuffer> into = asked.get(i).byteBuffer();
      coming.get(i).whenComplete((read, failure) -> {
        if (failure == null) {
          into.complete(read);
        } else {
          into.completeExceptionally(failure);
        }
      });
    }
  }

  @Override
  public void close() {
    reader.close();
  }

  @Override
  public String toString() {
    return "LanewayInputStream[" + location + "]";
  }

  private int counted(long read) {
    if (read > 0) {
      metrics.read(read);
    }
    return (int) read;
  }

  private void check() throws IOException {
    if (!reader.isOpen()) {
      throw new IOException(location + ": its stream is closed");
    }
  }
}
