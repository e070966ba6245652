package dev.laneway.hadoop;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * A file whose bytes are in the store, in a multipart upload that is neither completed nor aborted.
 *
 * @param key The key that the file will have.
 * @param upload The id of the upload.
 * @param parts The parts of the upload, in their order.
 * @param bytes The size of the file.
 */
record PendingFile(String key, String upload, List<String> parts, long bytes) {
  /**
   * The first bytes of a list of such files. They identify the format, so that an older library refuses a list in a
   * newer format.
   */
  private static final int MAGIC = 0x6c777031;

  /** Encodes the list of files that a task has committed, for the commit of its job. */
  static byte[] write(List<PendingFile> files) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeInt(MAGIC);
    out.writeInt(files.size());
    for (PendingFile file : files) {
      out.writeUTF(file.key);
      out.writeUTF(file.upload);
      out.writeLong(file.bytes);
      out.writeInt(file.parts.size());
      for (String part : file.parts) {
        out.writeUTF(part);
      }
    }
    out.flush();
    return bytes.toByteArray();
  }

  /**
   * Decodes such a list.
   *
   * @throws IOException if it isn't a list, or isn't complete
   */
  static List<PendingFile> read(byte[] bytes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    if (in.readInt() != MAGIC) {
      throw new IOException("this isn't a list of a task's committed files, or its format is newer");
    }
    List<PendingFile> files = new ArrayList<>();
    for (int left = in.readInt(); left > 0; left--) {
      String key = in.readUTF();
      String upload = in.readUTF();
      long size = in.readLong();
      List<String> parts = new ArrayList<>();
      for (int more = in.readInt(); more > 0; more--) {
        parts.add(in.readUTF());
      }
      files.add(new PendingFile(key, upload, List.copyOf(parts), size));
    }
    if (in.read() >= 0) {
      throw new IOException("unexpected bytes follow the list of a task's committed files");
    }
    return files;
  }
}
