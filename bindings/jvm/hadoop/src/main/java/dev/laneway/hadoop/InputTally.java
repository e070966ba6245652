package dev.laneway.hadoop;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsAggregator;
import org.apache.hadoop.fs.statistics.IOStatisticsContext;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;

/**
 * Counts the reads of one open file. When the file is closed, the counts are added to those of the filesystem and of
 * the thread that opened the file.
 */
final class InputTally implements IOStatisticsSource {
  private final Tally all;
  private final FileSystem.Statistics ofThread;
  private final IOStatisticsAggregator context = IOStatisticsContext.getCurrentIOStatisticsContext().getAggregator();
  private final IOStatisticsStore counts = IOStatisticsBinding.iostatisticsStore()
      .withCounters(
          StreamStatisticNames.STREAM_READ_BYTES,
          StreamStatisticNames.STREAM_READ_OPENED,
          StreamStatisticNames.STREAM_READ_UNBUFFERED,
          StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS,
          StreamStatisticNames.STREAM_READ_VECTORED_INCOMING_RANGES)
      .build();
  private final AtomicLong bytes = counts.getCounterReference(StreamStatisticNames.STREAM_READ_BYTES);

  InputTally(Tally all) {
    this.all = all;
    this.ofThread = all.ofThread();
    counts.incrementCounter(StreamStatisticNames.STREAM_READ_OPENED);
  }

  /** Counts bytes that were handed to the caller. */
  void read(int more) {
    bytes.addAndGet(more);
    ofThread.incrementBytesRead(more);
  }

  /**
   * Counts ranges that are read together. They count for the thread that requests them, even if another thread receives
   * them.
   */
  void vectored(int ranges, long wanted) {
    counts.incrementCounter(StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS);
    counts.incrementCounter(StreamStatisticNames.STREAM_READ_VECTORED_INCOMING_RANGES, ranges);
    ofThread.incrementReadOps(ranges);
    ofThread.incrementBytesRead(wanted);
  }

  /** Counts bytes of a range of {@link #vectored} that has arrived. */
  void arrived(int more) {
    bytes.addAndGet(more);
  }

  void unbuffered() {
    counts.incrementCounter(StreamStatisticNames.STREAM_READ_UNBUFFERED);
  }

  void closed() {
    all.add(counts);
    context.aggregate(counts);
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }
}
