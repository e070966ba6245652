package dev.laneway.hadoop;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The files that task attempts in this process have written but not committed. In MapReduce and Spark, a task commits
 * in the process that wrote its files, so no other process needs this list. If the process is killed, the job's
 * committer finds the unfinished uploads in the store and aborts them.
 */
final class Attempts {
  /** Maps the bucket's URL with an attempt's key to the attempt's files, and each file's future key to the file. */
  private static final Map<String, Map<String, PendingFile>> FILES = new HashMap<>();

  private Attempts() {}

  /**
   * Adds a file that was written completely.
   *
   * @param bucket the URL of its bucket
   * @return the file that it replaces, if any; the upload of that file is no longer needed
   */
  static synchronized Optional<PendingFile> wrote(String bucket, Uncommitted file, PendingFile pending) {
    Map<String, PendingFile> files = FILES.computeIfAbsent(bucket + file.attempt(), attempt -> new LinkedHashMap<>());
    return Optional.ofNullable(files.put(file.place(), pending));
  }

  /** Returns a file that an attempt has written; empty if it has written none under this key. */
  static synchronized Optional<PendingFile> file(String bucket, Uncommitted file) {
    return Optional.ofNullable(FILES.getOrDefault(bucket + file.attempt(), Map.of()).get(file.place()));
  }

  /** Returns the file, and removes it from this list. */
  static synchronized Optional<PendingFile> take(String bucket, Uncommitted file) {
    Optional<PendingFile> taken = file(bucket, file);
    if (taken.isPresent()) {
      FILES.computeIfPresent(bucket + file.attempt(), (attempt, files) -> {
        files.remove(file.place());
        return files.isEmpty() ? null : files;
      });
    }
    return taken;
  }

  /** Returns whether an attempt has written any file. */
  static synchronized boolean hasWritten(String bucket, String attempt) {
    return FILES.containsKey(bucket + attempt);
  }

  /** Returns the files of an attempt. */
  static synchronized List<PendingFile> files(String bucket, String attempt) {
    return List.copyOf(FILES.getOrDefault(bucket + attempt, Map.of()).values());
  }

  /** Returns the files of an attempt, and removes them from this list. */
  static synchronized List<PendingFile> take(String bucket, String attempt) {
    List<PendingFile> files = files(bucket, attempt);
    FILES.remove(bucket + attempt);
    return files;
  }
}
