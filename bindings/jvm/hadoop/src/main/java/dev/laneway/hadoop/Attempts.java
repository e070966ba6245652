package dev.laneway.hadoop;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What the attempts of tasks in this process have written and not committed. A task commits in the process that wrote its files, as those of
 * MapReduce and Spark do, so that this is known nowhere else; what a process leaves that is killed, its job finds in the store.
 */
final class Attempts {
  /** By the URL of the bucket and the key of the attempt, and then by the key that a file is to have. */
  private static final Map<String, Map<String, PendingFile>> FILES = new HashMap<>();

  private Attempts() {}

  /**
   * A file was written to its end.
   *
   * @param bucket the URL of its bucket
   * @return the one that it replaces, whose upload nobody needs any more
   */
  static synchronized Optional<PendingFile> wrote(String bucket, Uncommitted file, PendingFile pending) {
    Map<String, PendingFile> files = FILES.computeIfAbsent(bucket + file.attempt(), attempt -> new LinkedHashMap<>());
    return Optional.ofNullable(files.put(file.place(), pending));
  }

  /** The file that an attempt has written; empty where it has written none there. */
  static synchronized Optional<PendingFile> file(String bucket, Uncommitted file) {
    return Optional.ofNullable(FILES.getOrDefault(bucket + file.attempt(), Map.of()).get(file.place()));
  }

  /** The same, which is forgotten here. */
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

  /** Whether an attempt has written a file. */
  static synchronized boolean hasWritten(String bucket, String attempt) {
    return FILES.containsKey(bucket + attempt);
  }

  /** The files of an attempt. */
  static synchronized List<PendingFile> files(String bucket, String attempt) {
    return List.copyOf(FILES.getOrDefault(bucket + attempt, Map.of()).values());
  }

  /** The same, which are forgotten here. */
  static synchronized List<PendingFile> take(String bucket, String attempt) {
    List<PendingFile> files = files(bucket, attempt);
    FILES.remove(bucket + attempt);
    return files;
  }
}
