package dev.laneway.hadoop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * What the attempts of tasks in this process have written and not committed. A task commits in the process that wrote its files, as those of
 * MapReduce and Spark do, so that this is known nowhere else; what a process leaves that is killed, its job finds in the store.
 */
final class Attempts {
  private static final Map<String, List<PendingFile>> FILES = new HashMap<>();
  private static final Map<String, Long> SIZES = new HashMap<>();

  private Attempts() {}

  /**
   * A file was written to its end.
   *
   * @param bucket the URL of its bucket
   * @param name the key that it was written under
   */
  static synchronized void wrote(String bucket, String name, Uncommitted file, PendingFile pending) {
    FILES.computeIfAbsent(bucket + file.attempt(), attempt -> new ArrayList<>()).add(pending);
    SIZES.put(bucket + name, pending.bytes());
  }

  /** How many bytes the file has that was written under a key; empty where none was. */
  static synchronized OptionalLong size(String bucket, String name) {
    Long size = SIZES.get(bucket + name);
    return size == null ? OptionalLong.empty() : OptionalLong.of(size);
  }

  /** Whether an attempt has written a file. */
  static synchronized boolean hasWritten(String bucket, String attempt) {
    return FILES.containsKey(bucket + attempt);
  }

  /** The files of an attempt, which are forgotten here. */
  static synchronized List<PendingFile> take(String bucket, String attempt) {
    SIZES.keySet().removeIf(name -> name.startsWith(bucket + attempt + "/"));
    List<PendingFile> files = FILES.remove(bucket + attempt);
    return files == null ? List.of() : files;
  }
}
