package dev.laneway.benches;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.OpenFileOptions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FutureIO;

/** Reads a large file from its beginning to its end. */
final class Whole {
  private Whole() {}

  static Map<String, Object> read(FileSystem files, Path place) throws IOException {
    byte[] buffer = new byte[1 << 20];
    long bytes = 0;
    try (FSDataInputStream in = open(files, place)) {
      for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
        bytes += read;
      }
    }
    return Map.of("bytes", bytes, "ok", bytes > 0);
  }

  static FSDataInputStream open(FileSystem files, Path place) throws IOException {
    return FutureIO.awaitFuture(files.openFile(place)
        .opt(OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY, OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY_WHOLE_FILE)
        .build());
  }
}
