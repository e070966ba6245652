package dev.laneway.benches;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** Lists many files recursively, and deletes a directory with many files. */
final class Trees {
  private Trees() {}

  static Map<String, Object> list(FileSystem files, Path place) throws IOException {
    long count = 0;
    for (RemoteIterator<LocatedFileStatus> all = files.listFiles(place, true); all.hasNext(); all.next()) {
      count++;
    }
    return Map.of("files", count, "ok", count == 50_000);
  }

  static Map<String, Object> delete(FileSystem files, Path place) throws IOException {
    return Map.of("ok", files.delete(place, true));
  }
}
