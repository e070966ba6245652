package dev.laneway.hadoop;

import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;

/**
 * Counts a filesystem's operations and requests under Hadoop's own names (IOStatistics). It also counts for each thread
 * the bytes and operations that jobs report (FileSystem.Statistics).
 */
class Tally implements IOStatisticsSource {
  private final IOStatisticsStore counts = IOStatisticsBinding.iostatisticsStore()
      .withCounters(
          StoreStatisticNames.OP_COPY_FROM_LOCAL_FILE,
          StoreStatisticNames.OP_CREATE,
          StoreStatisticNames.OP_CREATE_NON_RECURSIVE,
          StoreStatisticNames.OP_DELETE,
          StoreStatisticNames.OP_BULK_DELETE,
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
          StoreStatisticNames.OBJECT_BULK_DELETE_REQUEST,
          StoreStatisticNames.OBJECT_COPY_REQUESTS,
          StoreStatisticNames.OBJECT_DELETE_REQUEST,
          StoreStatisticNames.OBJECT_DELETE_OBJECTS,
          StoreStatisticNames.OBJECT_LIST_REQUEST,
          StoreStatisticNames.OBJECT_METADATA_REQUESTS,
          StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_INITIATED,
          StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_ABORTED,
          StoreStatisticNames.OBJECT_PUT_REQUEST,
          StreamStatisticNames.STREAM_READ_BYTES,
          StreamStatisticNames.STREAM_READ_OPENED,
          StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS,
          StreamStatisticNames.STREAM_READ_VECTORED_INCOMING_RANGES,
          StreamStatisticNames.STREAM_WRITE_BYTES,
          StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
      .build();

  private final FileSystem.Statistics ofThread;

  Tally(FileSystem.Statistics ofThread) {
    this.ofThread = ofThread;
  }

  /** Counts an operation that only reads. Its name is one of StoreStatisticNames. */
  void looked(String operation) {
    counts.incrementCounter(operation);
    ofThread.incrementReadOps(1);
  }

  /** Counts an operation that changes something. Its name is one of StoreStatisticNames. */
  void changed(String operation) {
    counts.incrementCounter(operation);
    ofThread.incrementWriteOps(1);
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

  /** Returns the threads' own counts of bytes and operations. */
  FileSystem.Statistics ofThread() {
    return ofThread;
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }
}
