package dev.laneway.hadoop;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileChecksum;

/**
 * A file's version, used as its checksum. Within one store, equal checksums mean equal bytes. Checksums of different
 * stores can't be compared.
 */
public final class VersionChecksum extends FileChecksum {
  private String version;

  /** Makes an empty checksum, for {@link #readFields}. */
  public VersionChecksum() {
    this("");
  }

  VersionChecksum(String version) {
    this.version = version;
  }

  /** Returns S3A's name for such a checksum. */
  @Override
  public String getAlgorithmName() {
    return "etag";
  }

  @Override
  public int getLength() {
    return getBytes().length;
  }

  @Override
  public byte[] getBytes() {
    return version.getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public void write(DataOutput out) throws IOException {
    out.writeUTF(version);
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    version = in.readUTF();
  }

  @Override
  public String toString() {
    return "etag: \"" + version + '"';
  }
}
