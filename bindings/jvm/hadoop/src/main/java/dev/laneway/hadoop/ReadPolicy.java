package dev.laneway.hadoop;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** The expected way of reading a file. Callers name it when they open the file (fs.option.openfile.read.policy). */
enum ReadPolicy {
  /** Unknown: in order until the first seek. This is the usual case. */
  ADAPTIVE,
  /** Most of the file, in order. */
  SEQUENTIAL,
  /** At random positions. */
  RANDOM,
  /** By columns, with an index of the columns at the file's end. */
  COLUMNAR;

  /**
   * Returns the first known policy in a comma-separated list.
   *
   * @return empty if none is known
   */
  static Optional<ReadPolicy> first(String names) {
    return Arrays.stream(names.split(",")).map(ReadPolicy::named).flatMap(Optional::stream).findFirst();
  }

  /**
   * Returns how many bytes at the file's end the opening request fetches, unless the file is read in order. 128 KiB
   * take a millisecond at 1 Gbit/s, and most small files then need no second request. The index of a Parquet file with
   * 50 columns and 64 row groups has about 400 KiB.
   */
  long footerBytes() {
    return this == COLUMNAR ? 512 << 10 : 128 << 10;
  }

  private static Optional<ReadPolicy> named(String name) {
    return switch (name.trim().toLowerCase(Locale.ROOT)) {
      case "adaptive", "default", "normal" -> Optional.of(ADAPTIVE);
      case "sequential", "whole-file", "avro", "csv", "json" -> Optional.of(SEQUENTIAL);
      case "random", "vector", "hbase" -> Optional.of(RANDOM);
      case "columnar", "parquet", "orc" -> Optional.of(COLUMNAR);
      default -> Optional.empty();
    };
  }
}
