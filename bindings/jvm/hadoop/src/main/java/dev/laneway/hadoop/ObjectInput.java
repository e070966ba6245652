package dev.laneway.hadoop;

import dev.laneway.ObjectReader;
import dev.laneway.ObjectStream;
import dev.laneway.Range;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.ByteBufferPositionedReadable;
import org.apache.hadoop.fs.ByteBufferReadable;
import org.apache.hadoop.fs.CanSetReadahead;
import org.apache.hadoop.fs.CanUnbuffer;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.VectoredReadUtils;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;

/**
 * Reads a file, all bytes of one version. Callers can read in order, and the library then reads ahead. They can also
 * read at positions, with any number of threads, or several ranges together. Closing the stream ends running reads.
 */
final class ObjectInput extends FSInputStream
    implements ByteBufferReadable,
        ByteBufferPositionedReadable,
        CanSetReadahead,
        CanUnbuffer,
        StreamCapabilities,
        IOStatisticsSource {
  private final Path path;
  private final ObjectReader reader;
  private final ObjectStream inOrder;
  private final long size;
  private final InputTally tally;
  private volatile boolean isClosed;

  ObjectInput(Path path, ObjectReader reader, InputTally tally) {
    this.path = path;
    this.reader = reader;
    this.inOrder = reader.stream();
    this.size = reader.size();
    this.tally = tally;
  }

  @Override
  public synchronized long getPos() throws IOException {
    return inOrder.position();
  }

  /**
   * Moves to another position. Sends no request.
   *
   * @throws EOFException for a position before the beginning or after the end
   */
  @Override
  public synchronized void seek(long to) throws IOException {
    check();
    if (to < 0) {
      throw new EOFException(FSExceptionMessages.NEGATIVE_SEEK + " " + to + " in " + path);
    }
    if (to > size) {
      throw new EOFException(FSExceptionMessages.CANNOT_SEEK_PAST_EOF + " of " + size + " bytes: " + to + " in " + path);
    }
    inOrder.position(to);
  }

  /** Returns false, because there is no other copy to read from. */
  @Override
  public boolean seekToNewSource(long to) {
    return false;
  }

  @Override
  public synchronized int read() throws IOException {
    check();
    try {
      int read = inOrder.read();
      if (read >= 0) {
        tally.read(1);
      }
      return read;
    } catch (IOException failed) {
      throw failed(failed);
    }
  }

  @Override
  public synchronized int read(byte[] into, int at, int length) throws IOException {
    Objects.checkFromIndexSize(at, length, into.length);
    return readInOrder(ByteBuffer.wrap(into, at, length));
  }

  @Override
  public synchronized int read(ByteBuffer into) throws IOException {
    return readInOrder(into);
  }

  @Override
  public int read(long from, byte[] into, int at, int length) throws IOException {
    validatePositionedReadArgs(from, into, at, length);
    Objects.checkFromIndexSize(at, length, into.length);
    return readAt(from, ByteBuffer.wrap(into, at, length));
  }

  @Override
  public int read(long from, ByteBuffer into) throws IOException {
    if (from < 0) {
      throw new EOFException("position is negative");
    }
    return readAt(from, into);
  }

  @Override
  public void readFully(long from, ByteBuffer into) throws IOException {
    while (into.hasRemaining()) {
      int read = read(from, into);
      if (read < 0) {
        throw new EOFException(FSExceptionMessages.EOF_IN_READ_FULLY);
      }
      from += read;
    }
  }

  /** Returns how many bytes of the file follow, even if they have not arrived. HDFS and S3A do the same. */
  @Override
  public synchronized int available() throws IOException {
    check();
    return inOrder.available();
  }

  @Override
  public void readVectored(List<? extends FileRange> ranges, IntFunction<ByteBuffer> allocate) throws IOException {
    readVectored(ranges, allocate, VectoredReadUtils.LOG_BYTE_BUFFER_RELEASED);
  }

  /**
   * Reads ranges together, with one request for neighbouring ranges where that is faster. The future of a range
   * completes as soon as the range has arrived, with a buffer of its own from {@code allocate}. If a range fails, its
   * buffer is passed to {@code release}.
   *
   * @throws EOFException If a range begins before the file or ends after it. Nothing is read then.
   * @throws IllegalArgumentException If ranges overlap.
   */
  @Override
  public void readVectored(
      List<? extends FileRange> ranges, IntFunction<ByteBuffer> allocate, Consumer<ByteBuffer> release)
      throws IOException {
    Objects.requireNonNull(allocate, "allocate");
    Objects.requireNonNull(release, "release");
    check();
    List<? extends FileRange> sorted = VectoredReadUtils.validateAndSortRanges(ranges, Optional.of(size));
    List<FileRange> asked = new ArrayList<>();
    List<Range> wanted = new ArrayList<>();
    for (FileRange range : sorted) {
      if (range.getLength() == 0) {
        range.setData(CompletableFuture.completedFuture(allocate.apply(0)));
      } else {
        asked.add(range);
        wanted.add(new Range(range.getOffset(), range.getLength()));
      }
    }
    tally.vectored(sorted.size(), wanted.stream().mapToLong(Range::length).sum());
    List<ByteBuffer> buffers = new ArrayList<>();
    List<CompletableFuture<ByteBuffer>> coming;
    try {
      coming = reader.readRanges(wanted, length -> {
        ByteBuffer made = allocate.apply(length);
        buffers.add(made);
        return made;
      });
    } catch (IOException | RuntimeException failed) {
      buffers.forEach(release);
      throw failed;
    }
    for (int i = 0; i < asked.size(); i++) {
      asked.get(i).setData(arrived(coming.get(i), buffers.get(i), release));
    }
  }

  /** Does nothing: the library decides how much to read ahead. */
  @Override
  public void setReadahead(Long bytes) {}

  /** Frees bytes that were read ahead. Reading continues at the same position. */
  @Override
  public synchronized void unbuffer() {
    if (!isClosed) {
      inOrder.unbuffer();
    }
    tally.unbuffered();
  }

  @Override
  public void close() {
    if (isClosed) {
      return;
    }
    isClosed = true;
    // Don't take the lock here: a read that waits for bytes holds it, and this must end that read.
    reader.close();
    tally.closed();
  }

  @Override
  public boolean hasCapability(String capability) {
    return switch (capability.toLowerCase(Locale.ROOT)) {
      case StreamCapabilities.IOSTATISTICS,
          StreamCapabilities.IOSTATISTICS_CONTEXT,
          StreamCapabilities.PREADBYTEBUFFER,
          StreamCapabilities.READAHEAD,
          StreamCapabilities.READBYTEBUFFER,
          StreamCapabilities.UNBUFFER,
          StreamCapabilities.VECTOREDIO -> true;
      default -> false;
    };
  }

  @Override
  public IOStatistics getIOStatistics() {
    return tally.getIOStatistics();
  }

  @Override
  public String toString() {
    return "ObjectInput[" + path + ", size=" + size + ", " + tally.getIOStatistics() + "]";
  }

  private int readInOrder(ByteBuffer into) throws IOException {
    check();
    try {
      int read = inOrder.read(into);
      tally.read(Math.max(0, read));
      return read;
    } catch (IOException failed) {
      throw failed(failed);
    }
  }

  private int readAt(long from, ByteBuffer into) throws IOException {
    check();
    if (!into.hasRemaining()) {
      return 0;
    }
    try {
      int read = reader.readAt(from, into);
      tally.read(Math.max(0, read));
      return read;
    } catch (IOException failed) {
      throw failed(failed);
    }
  }

  private CompletableFuture<ByteBuffer> arrived(
      CompletableFuture<ByteBuffer> coming, ByteBuffer buffer, Consumer<ByteBuffer> release) {
    CompletableFuture<ByteBuffer> data = new CompletableFuture<>() {
      @Override
      public boolean cancel(boolean mayInterrupt) {
        coming.cancel(mayInterrupt);
        return super.cancel(mayInterrupt);
      }
    };
    coming.whenComplete((read, failure) -> {
      if (failure == null) {
        tally.arrived(read.remaining());
        data.complete(read);
      } else {
        release.accept(buffer);
        data.completeExceptionally(failed(failure));
      }
    });
    return data;
  }

  private IOException failed(Throwable failure) {
    return isClosed ? closed() : Failures.of(path, failure);
  }

  private void check() throws IOException {
    if (isClosed) {
      throw closed();
    }
  }

  private IOException closed() {
    return new PathIOException(path.toString(), FSExceptionMessages.STREAM_IS_CLOSED);
  }
}
