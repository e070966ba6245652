package dev.laneway.benches;

import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** Lists many files recursively, lists folders one by one, and deletes a directory with many files. */
final class Trees {
  private static final int THREADS = 64;
  private static final int FILES = 50_000;
  private static final int FOLDERS = 40;
  private static final int FILES_OF_A_FOLDER = 25;

  private Trees() {}

  /** Writes empty files, 500 in each folder. */
  static Map<String, Object> write(FileSystem files, Path place) throws IOException {
    Threads.run(THREADS, FILES, number -> files.create(new Path(place, number / 500 + "/" + number), true).close());
    return Map.of();
  }

  static Map<String, Object> list(FileSystem files, Path place) throws IOException {
    long count = 0;
    for (RemoteIterator<LocatedFileStatus> all = files.listFiles(place, true); all.hasNext(); all.next()) {
      count++;
    }
    return Map.of("files", count, "ok", count == FILES);
  }

  static Map<String, Object> writeFolders(FileSystem files, Path place) throws IOException {
    Threads.run(THREADS, FOLDERS * FILES_OF_A_FOLDER, number ->
        files.create(new Path(place, number % FOLDERS + "/" + number), true).close());
    return Map.of();
  }

  /** Lists each folder, one after the other. Also reports the longest time that a folder took. */
  static Map<String, Object> listFolders(FileSystem files, Path place) throws IOException {
    long count = 0;
    long longest = 0;
    for (int folder = 0; folder < FOLDERS; folder++) {
      long begun = System.nanoTime();
      count += files.listStatus(new Path(place, Integer.toString(folder))).length;
      longest = Math.max(longest, System.nanoTime() - begun);
    }
    return Map.of("longest_s", longest / 1e9, "ok", count == FOLDERS * FILES_OF_A_FOLDER);
  }

  static Map<String, Object> delete(FileSystem files, Path place) throws IOException {
    return Map.of("ok", files.delete(place, true));
  }
}
