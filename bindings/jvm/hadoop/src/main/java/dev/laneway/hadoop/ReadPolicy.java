package dev.laneway.hadoop;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** How a file is going to be read, as Hadoop names it at opening (fs.option.openfile.read.policy). */
enum ReadPolicy {
  /** In order until it is read elsewhere: the usual case, of which nothing is known. */
  ADAPTIVE,
  /** In order, most of it. */
  SEQUENTIAL,
  /** Here and there. */
  RANDOM,
  /** By its columns, whose index stands at the end. */
  COLUMNAR;

  /**
   * The first policy of a list by commas that is known.
   *
   * @return empty where none is
   */
  static Optional<ReadPolicy> first(String names) {
    return Arrays.stream(names.split(",")).map(ReadPolicy::named).flatMap(Optional::stream).findFirst();
  }

  /**
   * How many of the last bytes come with the opening request of what isn't read in order. 128 KiB, a millisecond of 1 Gbit/s, save most small files a second request;
   * the index of a table of 50 columns and 64 row groups has some 400 KiB.
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
