package dev.laneway.hadoop;

import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;

/**
 * The status of a file or directory, from the store's metadata.
 *
 * <p>A file's version is S3's ETag or GCS's generation. {@link #getEtag} returns it, and an open with this status reads
 * exactly that version.
 */
final class ObjectStatus extends FileStatus implements EtagSource {
  private static final long serialVersionUID = 1;

  private final String version;

  private ObjectStatus(
      long bytes, boolean isDirectory, long blockBytes, long modifiedMs, String owner, Path path, String version) {
    super(bytes, isDirectory, 1, blockBytes, modifiedMs, 0, null, owner, owner, path);
    this.version = version;
  }

  /** Returns the status of a file of this size, last modified at a time in milliseconds since 1970. */
  static ObjectStatus file(Path path, long bytes, long blockBytes, long modifiedMs, String owner, String version) {
    return new ObjectStatus(bytes, false, blockBytes, modifiedMs, owner, path, version);
  }

  /** Returns the status of a directory, with a time in milliseconds since 1970. */
  static ObjectStatus directory(Path path, long modifiedMs, String owner) {
    return new ObjectStatus(0, true, 0, modifiedMs, owner, path, null);
  }

  /** Returns S3's ETag without quotes, or GCS's generation in decimal; null for a directory. */
  @Override
  public String getEtag() {
    return version;
  }

  /** Returns the status with a single block on localhost, because no machine is nearer to the store than others. */
  LocatedFileStatus located() {
    return new Located(this);
  }

  /** Returns one block on localhost, which is Hadoop's default for files that aren't on any machine. */
  static BlockLocation[] blocks(long start, long bytes) {
    String[] names = {"localhost:9866"};
    String[] hosts = {"localhost"};
    return new BlockLocation[] {new BlockLocation(names, hosts, start, bytes)};
  }

  private static final class Located extends LocatedFileStatus implements EtagSource {
    private static final long serialVersionUID = 1;

    private final String version;

    Located(ObjectStatus status) {
      super(status, status.isFile() ? blocks(0, status.getLen()) : null);
      this.version = status.version;
    }

    @Override
    public String getEtag() {
      return version;
    }

    @Override
    public boolean equals(Object other) {
      return super.equals(other);
    }

    @Override
    public int hashCode() {
      return super.hashCode();
    }
  }

  @Override
  public boolean equals(Object other) {
    return super.equals(other);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }
}
