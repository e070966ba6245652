package dev.laneway.hadoop;

import dev.laneway.ObjectWriter;
import dev.laneway.WriterStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Locale;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsAggregator;
import org.apache.hadoop.fs.statistics.IOStatisticsContext;
import org.apache.hadoop.util.Progressable;

/**
 * Writes a file, which is created only when this is closed. After a failed write or an abort, or without a close, no
 * file is created, and an existing file stays.
 */
final class ObjectOutput extends FileOutput {
  /** A task reports progress once for this many bytes, not for each byte or line. */
  private static final int PROGRESS_BYTES = 32 << 10;

  private final String key;
  private final Lookup lookup;
  private final ObjectWriter writer;
  private final WriterStream out;
  private final Tally tally;
  private final Progressable progress;
  private final IOStatisticsAggregator context = IOStatisticsContext.getCurrentIOStatisticsContext().getAggregator();
  private long untold;

  /**
   * @param isOver tells whether the filesystem is closed
   * @param lookup finds out whether the file exists after an interrupted close
   * @param key the key of the file
   */
  ObjectOutput(
      Path path, String key, ObjectWriter writer, Tally tally, Progressable progress, BooleanSupplier isOver, Lookup lookup) {
    super(path, tally, isOver);
    this.key = key;
    this.lookup = lookup;
    this.writer = writer;
    this.out = writer.stream();
    this.tally = tally;
    this.progress = progress;
  }

  @Override
  void take(byte[] bytes, int at, int length) throws IOException {
    out.write(bytes, at, length);
    untold += length;
    if (progress != null && untold >= PROGRESS_BYTES) {
      untold = 0;
      progress.progress();
    }
  }

  /**
   * @throws FileAlreadyExistsException If another writer has created the file, which must not be replaced.
   * @throws InterruptedIOException If the thread was interrupted. The message says whether the file exists, because the
   *     store may have completed it.
   */
  @Override
  void finish() throws IOException {
    try {
      out.complete();
    } catch (InterruptedIOException stop) {
      throw (IOException) new InterruptedIOException(path() + ": closing was interrupted. " + left()).initCause(stop);
    } catch (IOException failed) {
      if (Failures.isConflict(failed)) {
        IOException exists = new FileAlreadyExistsException(path() + " exists, or isn't in the requested state");
        exists.initCause(failed);
        throw exists;
      }
      throw Failures.of(path(), failed);
    }
    tally.put();
  }

  /** Describes the file that exists after an interrupted completion. Sends one request. */
  private String left() {
    boolean isInterrupted = Thread.interrupted();
    try {
      return Failures.await(path(), lookup.file(key))
          .map(meta -> "A file of " + meta.size() + " bytes is there, from " + meta.updated() + "; this one has " + written())
          .orElse("No file is there");
    } catch (IOException failed) {
      return "The file may or may not be there, because the request that checks for it failed";
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Aborts the object. If the object's completion has already begun, the library itself cleans up. */
  @Override
  void giveUp() throws IOException {
    writer.abort();
  }

  @Override
  void closed(IOStatistics counted) {
    context.aggregate(counted);
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
}
