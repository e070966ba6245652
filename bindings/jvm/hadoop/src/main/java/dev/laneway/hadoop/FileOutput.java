package dev.laneway.hadoop;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.ClosedIOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;

/**
 * A file that is being written. After a failed write or an abort, it accepts no more bytes, and the store keeps nothing
 * of it.
 */
abstract class FileOutput extends OutputStream implements Abortable, StreamCapabilities, IOStatisticsSource {
  private final Path path;
  private final Tally tally;
  private final BooleanSupplier isOver;
  private final IOStatisticsStore counts = IOStatisticsBinding.iostatisticsStore()
      .withCounters(StreamStatisticNames.STREAM_WRITE_BYTES, StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
      .build();
  private final AtomicLong written = counts.getCounterReference(StreamStatisticNames.STREAM_WRITE_BYTES);
  private final byte[] one = new byte[1];
  private IOException failure;
  private boolean isClosed;

  /** @param isOver tells whether the filesystem is closed: nothing may be published after that */
  FileOutput(Path path, Tally tally, BooleanSupplier isOver) {
    this.path = path;
    this.tally = tally;
    this.isOver = isOver;
  }

  /** Takes bytes. When this method returns, all these bytes are sent or buffered. */
  abstract void take(byte[] bytes, int at, int length) throws IOException;

  /** Completes the file before this method returns. */
  abstract void finish() throws IOException;

  /** Removes all parts of the file from the store. An interrupt must not prevent this. */
  abstract void giveUp() throws IOException;

  final Path path() {
    return path;
  }

  /** Returns how many bytes were written. */
  final long written() {
    return written.get();
  }

  @Override
  public final synchronized void write(int next) throws IOException {
    one[0] = (byte) next;
    taken(one, 0, 1);
  }

  @Override
  public final synchronized void write(byte[] bytes, int at, int length) throws IOException {
    Objects.checkFromIndexSize(at, length, bytes.length);
    taken(bytes, at, length);
  }

  /** Does nothing, because an object becomes visible only when it is complete. */
  @Override
  public final void flush() {}

  @Override
  public final synchronized void close() throws IOException {
    if (isClosed) {
      return;
    }
    isClosed = true;
    try {
      if (failure != null) {
        throw new PathIOException(path.toString(), "is not written, because a write has failed before", failure);
      }
      checkFilesystem();
      finish();
    } catch (IOException failed) {
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS);
      IOException left = leave();
      if (left != null && left != failed) {
        failed.addSuppressed(left);
      }
      throw failed;
    } finally {
      tally.add(counts);
      closed(counts);
    }
  }

  /** Receives the counts of this file, once it is closed. */
  void closed(IOStatistics counted) {}

  @Override
  public final synchronized AbortableResult abort() {
    boolean wasClosed = isClosed;
    isClosed = true;
    return new Aborted(wasClosed, wasClosed ? null : leave());
  }

  @Override
  public final IOStatistics getIOStatistics() {
    return counts;
  }

  @Override
  public final String toString() {
    return getClass().getSimpleName() + "[" + path + ", " + counts + "]";
  }

  private void taken(byte[] bytes, int at, int length) throws IOException {
    if (isClosed) {
      throw new ClosedIOException(path.toString(), "is closed");
    }
    checkFilesystem();
    if (failure != null) {
      throw new PathIOException(path.toString(), "accepts no more bytes, because a write has failed", failure);
    }
    try {
      take(bytes, at, length);
    } catch (IOException failed) {
      failure = Failures.of(path, failed);
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS);
      throw failure;
    } catch (RuntimeException | Error failed) {
      // It is unknown how many of the bytes were accepted, so closing the file must not succeed.
      failure = Failures.of(path, failed);
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS);
      throw failed;
    }
    written.addAndGet(length);
  }

  private void checkFilesystem() throws IOException {
    if (isOver.getAsBoolean()) {
      throw new PathIOException(path.toString(), "is not written, because its filesystem was closed before");
    }
  }

  /** Aborts the file. An interrupt may have caused the failure, and must not prevent this. */
  private IOException leave() {
    boolean isInterrupted = Thread.interrupted();
    try {
      giveUp();
      return null;
    } catch (IOException failed) {
      return failed;
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private record Aborted(boolean alreadyClosed, IOException anyCleanupException) implements AbortableResult {}
}
