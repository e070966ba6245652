package dev.laneway.hadoop;

import dev.laneway.ObjectWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.ClosedIOException;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsAggregator;
import org.apache.hadoop.fs.statistics.IOStatisticsContext;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;
import org.apache.hadoop.util.Progressable;

/**
 * Writes a file, which comes into being when this is closed, and only then. After a write that failed, an abort, or without a close there is
 * nothing, and what was there before stays.
 */
final class ObjectOutput extends OutputStream
    implements Abortable, StreamCapabilities, IOStatisticsSource {
  /** Small writes gather to so many bytes before they are handed to the engine, which is a call out of the JVM. */
  private static final int GATHERED_BYTES = 32 << 10;

  private final Path path;
  private final ObjectWriter writer;
  private final Tally tally;
  private final Progressable progress;
  private final IOStatisticsAggregator context = IOStatisticsContext.getCurrentIOStatisticsContext().getAggregator();
  private final IOStatisticsStore counts = IOStatisticsBinding.iostatisticsStore()
      .withCounters(StreamStatisticNames.STREAM_WRITE_BYTES, StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
      .build();

  private final AtomicLong written =
      counts.getCounterReference(StreamStatisticNames.STREAM_WRITE_BYTES);
  private ByteBuffer gathered;
  private IOException failure;
  private boolean isClosed;

  ObjectOutput(Path path, ObjectWriter writer, Tally tally, Progressable progress) {
    this.path = path;
    this.writer = writer;
    this.tally = tally;
    this.progress = progress;
  }

  @Override
  public synchronized void write(int one) throws IOException {
    check();
    gather(1).put((byte) one);
    written.incrementAndGet();
  }

  @Override
  public synchronized void write(byte[] bytes, int at, int length) throws IOException {
    Objects.checkFromIndexSize(at, length, bytes.length);
    check();
    if (length < GATHERED_BYTES) {
      gather(length).put(bytes, at, length);
    } else {
      sendGathered();
      send(ByteBuffer.wrap(bytes, at, length));
    }
    written.addAndGet(length);
  }

  /** Does nothing: an object can't be seen before its end. */
  @Override
  public void flush() {}

  /**
   * Ends the file.
   *
   * @throws FileAlreadyExistsException where one came into being meanwhile that was not to be replaced
   */
  @Override
  public synchronized void close() throws IOException {
    if (isClosed) {
      return;
    }
    isClosed = true;
    try {
      if (failure != null) {
        throw new PathIOException(path.toString(), "is not written, because a write has failed before", failure);
      }
      sendGathered();
      writer.finish();
      tally.put();
    } catch (IOException failed) {
      giveUp(failed);
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS);
      throw ended(failed);
    } finally {
      gathered = null;
      tally.add(counts);
      context.aggregate(counts);
    }
  }

  @Override
  public synchronized AbortableResult abort() {
    boolean wasClosed = isClosed;
    isClosed = true;
    gathered = null;
    IOException failed = null;
    try {
      if (!wasClosed) {
        writer.abort();
      }
    } catch (IOException failing) {
      failed = failing;
    }
    return new Aborted(wasClosed, failed);
  }

  @Override
  public boolean hasCapability(String capability) {
    return switch (capability.toLowerCase(Locale.ROOT)) {
      case StreamCapabilities.IOSTATISTICS,
          StreamCapabilities.IOSTATISTICS_CONTEXT,
          CommonPathCapabilities.ABORTABLE_STREAM,
          CreateFileOptionKeys.FS_OPTION_CREATE_IN_CLOSE,
          CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE,
          CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE_ETAG -> true;
      default -> false;
    };
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }

  @Override
  public String toString() {
    return "ObjectOutput[" + path + ", " + counts + "]";
  }

  private void check() throws IOException {
    if (isClosed) {
      throw new ClosedIOException(path.toString(), "is closed");
    }
    if (failure != null) {
      throw new PathIOException(path.toString(), "takes no more, because a write has failed", failure);
    }
  }

  /** Where so many bytes gather, sent before if they don't fit. */
  private ByteBuffer gather(int bytes) throws IOException {
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
    } catch (IOException failed) {
      failure = Failures.of(path, failed);
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS);
      throw failure;
    }
    if (progress != null) {
      progress.progress();
    }
  }

  /** Leaves nothing of a file that failed: of one whose end was begun the library does so itself. */
  private void giveUp(IOException failed) {
    // An interrupt is why it may have failed, and not to keep this from being done.
    boolean isInterrupted = Thread.interrupted();
    try {
      writer.abort();
    } catch (IOException failing) {
      failed.addSuppressed(failing);
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private IOException ended(IOException failed) {
    if (Failures.isConflict(failed)) {
      IOException exists = new FileAlreadyExistsException(path + " is there, or in another state than was asked for");
      exists.initCause(failed);
      return exists;
    }
    return Failures.of(path, failed);
  }

  private record Aborted(boolean alreadyClosed, IOException anyCleanupException) implements AbortableResult {}
}
