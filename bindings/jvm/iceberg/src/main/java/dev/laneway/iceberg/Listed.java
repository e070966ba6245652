package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.ObjectMeta;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.stream.Stream;
import org.apache.iceberg.io.CloseableIterator;
import org.apache.iceberg.io.FileInfo;

/** The files of a listing, as they arrive. The listing is released when it is read to its end, or closed. */
final class Listed implements CloseableIterator<FileInfo> {
  private final Location prefix;
  private final Stream<ObjectMeta> objects;
  private final Iterator<FileInfo> files;

  private Listed(Location prefix, Stream<ObjectMeta> objects) {
    this.prefix = prefix;
    this.objects = objects;
    this.files = objects.filter(object -> !isMarker(object)).map(this::file).iterator();
  }

  static Listed of(Location prefix, Bucket bucket) {
    return new Listed(prefix, bucket.list(prefix.key()));
  }

  @Override
  public boolean hasNext() {
    try {
      return files.hasNext();
    } catch (UncheckedIOException failed) {
      throw Failures.of(prefix.text(), failed.getCause());
    }
  }

  @Override
  public FileInfo next() {
    return files.next();
  }

  @Override
  public void close() {
    objects.close();
  }

  private FileInfo file(ObjectMeta object) {
    long made = object.updated() == null ? 0 : object.updated().toEpochMilli();
    return new FileInfo(prefix.sibling(object.key()), object.size(), made);
  }

  /**
   * Returns whether an object is a directory's marker: empty, with a slash at the key's end. It isn't a file of a
   * table.
   */
  private static boolean isMarker(ObjectMeta object) {
    return object.size() == 0 && object.key().endsWith("/");
  }
}
