package dev.laneway.hadoop;

import dev.laneway.Counters;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.statistics.DurationTracker;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;
import org.apache.hadoop.util.functional.CallableRaisingIOE;

/**
 * Counts a filesystem's operations and requests under Hadoop's own names (IOStatistics). It also counts for each thread
 * the bytes and operations that jobs report (FileSystem.Statistics).
 */
class Tally implements IOStatisticsSource {
  /** The connections that the process has opened. Hadoop has no names for counts of connections. */
  static final String CONNECTIONS_OPENED = "connections_opened";

  /** The connections of the process that are open. */
  static final String CONNECTIONS_OPEN = "connections_open";

  private final IOStatisticsStore counts = IOStatisticsBinding.iostatisticsStore()
      .withDurationTracking(
          StoreStatisticNames.OP_COPY_FROM_LOCAL_FILE,
          StoreStatisticNames.OP_CREATE,
          StoreStatisticNames.OP_CREATE_NON_RECURSIVE,
          StoreStatisticNames.OP_DELETE,
          StoreStatisticNames.OP_GET_CONTENT_SUMMARY,
          StoreStatisticNames.OP_GET_FILE_CHECKSUM,
          StoreStatisticNames.OP_GET_FILE_STATUS,
          StoreStatisticNames.OP_LIST_FILES,
          StoreStatisticNames.OP_LIST_LOCATED_STATUS,
          StoreStatisticNames.OP_LIST_STATUS,
          StoreStatisticNames.OP_MKDIRS,
          StoreStatisticNames.OP_OPEN,
          StoreStatisticNames.OP_OPENFILE,
          StoreStatisticNames.OP_RENAME,
          StoreStatisticNames.OP_XATTR_GET_MAP,
          StoreStatisticNames.OP_XATTR_GET_NAMED,
          StoreStatisticNames.OP_XATTR_GET_NAMED_MAP,
          StoreStatisticNames.OP_XATTR_LIST)
      .withCounters(
          StoreStatisticNames.OP_BULK_DELETE,
          StoreStatisticNames.OBJECT_BULK_DELETE_REQUEST,
          StoreStatisticNames.OBJECT_COPY_REQUESTS,
          StoreStatisticNames.OBJECT_DELETE_REQUEST,
          StoreStatisticNames.OBJECT_DELETE_OBJECTS,
          StoreStatisticNames.OBJECT_LIST_REQUEST,
          StoreStatisticNames.OBJECT_METADATA_REQUESTS,
          StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_INITIATED,
          StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_ABORTED,
          StoreStatisticNames.OBJECT_PUT_REQUEST,
          StoreStatisticNames.STORE_IO_REQUEST,
          StoreStatisticNames.STORE_IO_RETRY,
          StoreStatisticNames.STORE_IO_THROTTLED,
          CONNECTIONS_OPENED,
          StreamStatisticNames.STREAM_READ_BYTES,
          StreamStatisticNames.STREAM_READ_OPENED,
          StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS,
          StreamStatisticNames.STREAM_READ_VECTORED_INCOMING_RANGES,
          StreamStatisticNames.STREAM_WRITE_BYTES,
          StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
      .withGauges(CONNECTIONS_OPEN)
      .build();

  private final FileSystem.Statistics ofThread;

  Tally(FileSystem.Statistics ofThread) {
    this.ofThread = ofThread;
  }

  /** Runs an operation that only reads, and counts it with its duration. Its name is one of StoreStatisticNames. */
  <T> T look(String operation, CallableRaisingIOE<T> work) throws IOException {
    ofThread.incrementReadOps(1);
    return IOStatisticsBinding.trackDuration(counts, operation, work);
  }

  /** Does the same for an operation that has begun and ends later. */
  <T> CompletableFuture<T> look(String operation, CompletableFuture<T> work) {
    ofThread.incrementReadOps(1);
    DurationTracker duration = counts.trackDuration(operation);
    work.whenComplete((result, failure) -> {
      if (failure != null) {
        duration.failed();
      }
      duration.close();
    });
    return work;
  }

  /** Does the same for an operation that changes something. */
  <T> T change(String operation, CallableRaisingIOE<T> work) throws IOException {
    ofThread.incrementWriteOps(1);
    return IOStatisticsBinding.trackDuration(counts, operation, work);
  }

  void head() {
    counts.incrementCounter(StoreStatisticNames.OBJECT_METADATA_REQUESTS);
  }

  void list() {
    counts.incrementCounter(StoreStatisticNames.OBJECT_LIST_REQUEST);
    ofThread.incrementLargeReadOps(1);
  }

  void put() {
    counts.incrementCounter(StoreStatisticNames.OBJECT_PUT_REQUEST);
  }

  void copied() {
    counts.incrementCounter(StoreStatisticNames.OBJECT_COPY_REQUESTS);
  }

  void deleting(int keys) {
    counts.incrementCounter(
        keys == 1 ? StoreStatisticNames.OBJECT_DELETE_REQUEST : StoreStatisticNames.OBJECT_BULK_DELETE_REQUEST);
    counts.incrementCounter(StoreStatisticNames.OBJECT_DELETE_OBJECTS, keys);
  }

  void count(String name) {
    counts.incrementCounter(name);
  }

  /** Adds the counts of a stream, once it is closed. */
  void add(IOStatistics stream) {
    counts.aggregate(stream);
  }

  /** Takes over the counts of the process's engine, which all filesystems share. */
  void engine(Counters engine) {
    counts.setCounter(StoreStatisticNames.STORE_IO_REQUEST, engine.requests());
    counts.setCounter(StoreStatisticNames.STORE_IO_RETRY, engine.retries());
    counts.setCounter(StoreStatisticNames.STORE_IO_THROTTLED, engine.throttles());
    counts.setCounter(CONNECTIONS_OPENED, engine.connections());
    counts.setGauge(CONNECTIONS_OPEN, engine.connectionsOpen());
  }

  /** Returns the threads' own counts of bytes and operations. */
  FileSystem.Statistics ofThread() {
    return ofThread;
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }
}
