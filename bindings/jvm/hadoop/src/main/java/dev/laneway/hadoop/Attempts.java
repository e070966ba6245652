package dev.laneway.hadoop;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The files that task attempts in this process have written and not committed. A task commits in the process that wrote
 * its files, as in MapReduce and Spark, so no other place needs this. If a process is killed, its job finds the files
 * in the store.
 */
final class Attempts {
  /** By the bucket's URL and the attempt's key, and then by the key that a file will have. */
  private static final Map<String, Map<String, PendingFile>> FILES = new HashMap<>();

  private Attempts() {}

  /**
   * Notes a file that was written to its end.
   *
   * @param bucket the URL of its bucket
   * @return the file that it replaces, whose upload is no longer needed
   */
  static synchronized Optional<PendingFile> wrote(String bucket, Uncommitted file, PendingFile pending) {
    Map<String, PendingFile> files = FILES.computeIfAbsent(bucket + file.attempt(), attempt -> new LinkedHashMap<>());
    return Optional.ofNullable(files.put(file.place(), pending));
  }

  /** Returns the file that an attempt has written; empty if it has written none there. */
  static synchronized Optional<PendingFile> file(String bucket, Uncommitted file) {
    return Optional.ofNullable(FILES.getOrDefault(bucket + file.attempt(), Map.of()).get(file.place()));
  }

  /** Returns the file and forgets it here. */
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

  /** Returns whether an attempt has written a file. */
  static synchronized boolean hasWritten(String bucket, String attempt) {
    return FILES.containsKey(bucket + attempt);
  }

  /** Returns the files of an attempt. */
  static synchronized List<PendingFile> files(String bucket, String attempt) {
    return List.copyOf(FILES.getOrDefault(bucket + attempt, Map.of()).values());
  }

  /** Returns the files of an attempt and forgets them here. */
  static synchronized List<PendingFile> take(String bucket, String attempt) {
    List<PendingFile> files = files(bucket, attempt);
    FILES.remove(bucket + attempt);
    return files;
  }
}
