package dev.laneway.hadoop;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UTFDataFormatException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.PathHandle;

/**
 * A handle of a file, with its key and, if requested, its version. A handle with a version can't open a file that was
 * replaced or moved.
 *
 * @param key the file's key
 * @param version the version that the file must have; null for any version
 */
record PinnedHandle(String key, String version) implements PathHandle {
  private static final long serialVersionUID = 1;

  /** The first bytes of an encoded handle, which distinguish it from other filesystems' handles. */
  private static final int MAGIC = 0x6c776831;

  /**
   * Decodes the bytes of a handle.
   *
   * @throws InvalidPathHandleException if they belong to another filesystem, or are incomplete
   */
  static PinnedHandle of(PathHandle handle) throws IOException {
    if (handle instanceof PinnedHandle ours) {
      return ours;
    }
    byte[] bytes = handle.toByteArray();
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      if (in.readInt() != MAGIC) {
        throw new InvalidPathHandleException("the handle belongs to another filesystem");
      }
      String key = in.readUTF();
      return new PinnedHandle(key, in.readBoolean() ? in.readUTF() : null);
    } catch (EOFException | UTFDataFormatException ended) {
      throw new InvalidPathHandleException("the handle is incomplete or damaged", ended);
    }
  }

  @Override
  public ByteBuffer bytes() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(MAGIC);
      out.writeUTF(key);
      out.writeBoolean(version != null);
      if (version != null) {
        out.writeUTF(version);
      }
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return ByteBuffer.wrap(bytes.toByteArray());
  }
}
