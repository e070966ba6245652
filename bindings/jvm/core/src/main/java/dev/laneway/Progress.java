package dev.laneway;

/**
 * The progress of a job.
 *
 * @param bytesDone bytes that were moved, including those of unfinished items
 * @param bytesFound bytes of the items that were found
 * @param itemsDone items that ended, in success or failure
 * @param itemsFound items that were found
 * @param scanComplete true once all items have been found
 */
public record Progress(
    long bytesDone, long bytesFound, long itemsDone, long itemsFound, boolean scanComplete) {
  static Progress read(Unpacked from) {
    return new Progress(from.number(), from.number(), from.number(), from.number(), from.flag());
  }
}
