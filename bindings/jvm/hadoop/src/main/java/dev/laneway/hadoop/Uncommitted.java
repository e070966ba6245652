package dev.laneway.hadoop;

import java.util.Arrays;
import java.util.Optional;

/**
 * A file of a task's attempt that will appear at another path once its job commits: {@code
 * out/_laneway-JOB/ATTEMPT/base/p=1/part-0} becomes {@code out/p=1/part-0}. Nothing is ever stored under the first
 * path.
 *
 * @param attempt the key of the attempt's directory: {@code out/_laneway-JOB/ATTEMPT}
 * @param place the key that the file will have
 */
record Uncommitted(String attempt, String place) {
  /** The beginning of a job directory's name. MapReduce, Spark and Hive ignore names that begin with an underscore. */
  static final String JOB = "_laneway-";

  /** The name of an attempt's directory whose content moves to the output directory. */
  static final String BASE = "base";

  /** Returns the uncommitted file with this key; empty if it is the key of an ordinary file. */
  static Optional<Uncommitted> of(String key) {
    if (!key.contains(JOB)) {
      return Optional.empty();
    }
    String[] names = key.split("/");
    for (int i = 0; i + 3 < names.length; i++) {
      if (names[i].startsWith(JOB) && names[i + 2].equals(BASE)) {
        return Optional.of(new Uncommitted(joined(names, 0, i + 2), place(names, i)));
      }
    }
    return Optional.empty();
  }

  private static String place(String[] names, int job) {
    String inside = joined(names, job + 3, names.length);
    return job == 0 ? inside : joined(names, 0, job) + "/" + inside;
  }

  private static String joined(String[] names, int from, int to) {
    return String.join("/", Arrays.copyOfRange(names, from, to));
  }
}
