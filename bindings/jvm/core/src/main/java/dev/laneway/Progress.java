package dev.laneway;

/**
 * How far a job is.
 *
 * @param bytesDone bytes that were moved, those of unfinished items too
 * @param bytesFound bytes of the items that were found
 * @param itemsDone items that ended, well or not
 * @param itemsFound items that were found
 * @param scanComplete whether nothing more will be found
 */
public record Progress(
    long bytesDone, long bytesFound, long itemsDone, long itemsFound, boolean scanComplete) {
  static Progress read(Unpacked from) {
    return new Progress(from.number(), from.number(), from.number(), from.number(), from.flag());
  }
}
