package dev.laneway.hadoop;

import dev.laneway.ObjectWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Locale;
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
 * Writes a file, which is created only when this is closed. After a failed write, an abort, or without a close, nothing
 * is created, and an existing file stays.
 */
final class ObjectOutput extends FileOutput {
  /** A task reports progress once for this many bytes, not for each byte or line. */
  private static final int PROGRESS_BYTES = 32 << 10;

  private final ObjectWriter writer;
  private final OutputStream out;
  private final Tally tally;
  private final Progressable progress;
  private final IOStatisticsAggregator context = IOStatisticsContext.getCurrentIOStatisticsContext().getAggregator();
  private long untold;

  ObjectOutput(Path path, ObjectWriter writer, Tally tally, Progressable progress) {
    super(path, tally);
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

  /** @throws FileAlreadyExistsException if a file was created meanwhile that must not be replaced */
  @Override
  void finish() throws IOException {
    try {
      out.close();
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

  /** If its completion was begun, the library leaves nothing by itself. */
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
