package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.ObjectMeta;
import dev.laneway.OpenOptions;
import java.io.IOException;
import java.util.Locale;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/** A file of a table. Its length may be known from the table's metadata. */
final class LanewayInputFile implements InputFile {
  /**
   * The opening request fetches this many bytes from the end of a file that has an index there. They include the index,
   * or all of a small file.
   */
  private static final long FOOTER_BYTES = 512 << 10;

  /**
   * The same number for other files, which are manifests and metadata and are read as a whole. Most of them are
   * smaller, so they take one request.
   */
  private static final long WHOLE_BYTES = 1 << 20;

  private final Location location;
  private final Bucket bucket;
  private final FileMetrics metrics;
  private volatile long length;

  /** Makes a file. {@code length} is negative if it isn't known. */
  LanewayInputFile(Location location, Bucket bucket, FileMetrics metrics, long length) {
    this.location = location;
    this.bucket = bucket;
    this.metrics = metrics;
    this.length = length;
  }

  @Override
  public long getLength() {
    if (length < 0) {
      length = head().size();
    }
    return length;
  }

  /** Opens the file. The opening request also fetches the last bytes, so a small file needs no other request. */
  @Override
  public SeekableInputStream newStream() {
    try {
      OpenOptions options = OpenOptions.NONE.footer(isIndexed() ? FOOTER_BYTES : WHOLE_BYTES);
      LanewayInputStream stream =
          new LanewayInputStream(location.text(), bucket.open(location.key(), options), metrics);
      length = stream.length();
      return stream;
    } catch (IOException failed) {
      throw Failures.of(location.text(), failed);
    }
  }

  @Override
  public String location() {
    return location.text();
  }

  @Override
  public boolean exists() {
    try {
      length = head().size();
      return true;
    } catch (NotFoundException gone) {
      return false;
    }
  }

  @Override
  public String toString() {
    return location.text();
  }

  private ObjectMeta head() {
    try {
      return bucket.head(location.key());
    } catch (IOException failed) {
      throw Failures.of(location.text(), failed);
    }
  }

  /** Returns whether the file's format has an index at the end. */
  private boolean isIndexed() {
    String name = location.key().toLowerCase(Locale.ROOT);
    return name.endsWith(".parquet") || name.endsWith(".orc") || name.endsWith(".puffin");
  }
}
