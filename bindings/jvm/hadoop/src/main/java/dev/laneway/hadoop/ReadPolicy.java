package dev.laneway.hadoop;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** The expected way of reading a file, as named at opening (fs.option.openfile.read.policy). */
enum ReadPolicy {
  /** In order until a seek: the usual case, about which nothing is known. */
  ADAPTIVE,
  /** Most of it, in order. */
  SEQUENTIAL,
  /** At random positions. */
  RANDOM,
  /** By columns, whose index is at the end. */
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
   * Returns how many last bytes come with the opening request, unless the file is read in order. 128 KiB take a
   * millisecond at 1 Gbit/s, and save most small files a second request. The index of a table of 50 columns and 64 row
   * groups has some 400 KiB.
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
