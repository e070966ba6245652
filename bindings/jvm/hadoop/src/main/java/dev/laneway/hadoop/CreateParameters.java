package dev.laneway.hadoop;

import dev.laneway.PutOptions;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;

/**
 * What the caller of {@code create} or {@code createFile} says of a new file.
 *
 * @param overwrites whether a file that is there may be replaced
 * @param isRecursive whether the directories above need not be there
 * @param skipsChecks whether nothing is looked for at first; without {@code overwrites} the store then refuses the file at its end
 * @param isConditional whether the file comes into being only where none is by the time of its end
 * @param version the version that the file replaces, and no other
 * @param headers what describes the object
 */
record CreateParameters(
    boolean overwrites,
    boolean isRecursive,
    boolean skipsChecks,
    boolean isConditional,
    Optional<String> version,
    Map<String, String> headers) {

  /** S3A's option that leaves out the checks of one file. */
  static final String PERFORMANCE = "fs.s3a.create.performance";

  /** What S3A's options begin with that become headers of the object. */
  static final String HEADER = "fs.s3a.create.header";

  /** The options that may be mandatory; those that begin with {@link #HEADER} may be, too. */
  static final Set<String> KNOWN = Set.of(
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE_ETAG,
      CreateFileOptionKeys.FS_OPTION_CREATE_IN_CLOSE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONTENT_TYPE,
      PERFORMANCE,
      HEADER);

  /** Of a file about which nothing more is said. */
  static CreateParameters plain(boolean overwrites, boolean isRecursive, boolean skipsChecks) {
    return new CreateParameters(overwrites, isRecursive, skipsChecks, false, Optional.empty(), Map.of());
  }

  /**
   * Reads a builder's options.
   *
   * @throws IllegalArgumentException for an empty version
   */
  static CreateParameters of(Configuration options, boolean overwrites, boolean isRecursive, boolean skipsChecks) {
    Optional<String> version =
        Optional.ofNullable(options.get(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE_ETAG));
    if (version.filter(String::isEmpty).isPresent()) {
      throw new IllegalArgumentException("the etag that is to be replaced is empty");
    }
    Map<String, String> headers = new TreeMap<>();
    for (Map.Entry<String, String> option : options) {
      if (option.getKey().startsWith(HEADER + ".")) {
        headers.put(option.getKey().substring(HEADER.length() + 1), option.getValue());
      }
    }
    String type = options.get(CreateFileOptionKeys.FS_OPTION_CREATE_CONTENT_TYPE);
    if (type != null) {
      headers.put("Content-Type", type);
    }
    return new CreateParameters(
        overwrites,
        isRecursive,
        skipsChecks || options.getBoolean(PERFORMANCE, false),
        options.getBoolean(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, false),
        version,
        headers);
  }

  /** Whether it is looked for a file that is there, before the first byte is written. */
  boolean looksForFile() {
    return !overwrites && !skipsChecks && !isConditional && version.isEmpty();
  }

  /** Whether it is looked for a directory of the same name. */
  boolean looksForDirectory() {
    return !skipsChecks && !isConditional && version.isEmpty();
  }

  /**
   * What is asked of the store with the object. Where nothing may be replaced the store keeps that, too, for whoever came first between the
   * look at what is there and the file's end.
   */
  PutOptions put(PutOptions base) {
    PutOptions put = described(base);
    if (version.isPresent()) {
      return put.ifVersion(version.get());
    }
    return isConditional || !overwrites ? put.ifAbsent() : put;
  }

  /** What describes the object, without a condition. */
  PutOptions described(PutOptions base) {
    PutOptions put = base;
    for (Map.Entry<String, String> header : headers.entrySet()) {
      put = described(put, header.getKey(), header.getValue());
    }
    return put;
  }

  private static PutOptions described(PutOptions put, String name, String value) {
    return switch (name.toLowerCase(Locale.ROOT)) {
      case "content-type" -> put.contentType(value);
      case "content-encoding" -> put.contentEncoding(value);
      case "content-disposition" -> put.contentDisposition(value);
      case "content-language" -> put.contentLanguage(value);
      case "cache-control" -> put.cacheControl(value);
      case "x-amz-storage-class" -> put.storageClass(value);
      default -> put.metadata(name, value);
    };
  }
}
