package dev.laneway;

/**
 * The progress of a job.
 *
 * @param bytesDone Bytes that were transferred, including those of unfinished items.
 * @param bytesFound Bytes of the items that were found so far.
 * @param itemsDone Items that ended, in success or failure.
 * @param itemsFound Items that were found so far.
 * @param scanComplete True once all items have been found.
 */
public record Progress(
    long bytesDone, long bytesFound, long itemsDone, long itemsFound, boolean scanComplete) {
  static Progress read(Unpacked from) {
    return new Progress(from.number(), from.number(), from.number(), from.number(), from.flag());
  }
}
