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
 * The options of a {@code create} or {@code createFile} call for a new file.
 *
 * @param overwrites true if an existing file may be replaced
 * @param isRecursive true if the directories above need not exist
 * @param skipsChecks true if nothing is looked up first; without {@code overwrites} the store then refuses the file at
 *     its end
 * @param isConditional true if the file is created only if none exists at its end
 * @param version the only version that the file may replace
 * @param headers headers of the object
 */
record CreateParameters(
    boolean overwrites,
    boolean isRecursive,
    boolean skipsChecks,
    boolean isConditional,
    Optional<String> version,
    Map<String, String> headers) {

  /** S3A's option that skips the checks of one file. */
  static final String PERFORMANCE = "fs.s3a.create.performance";

  /** The beginning of S3A's options that become headers of the object. */
  static final String HEADER = "fs.s3a.create.header";

  /** The options that may be mandatory. Those that begin with {@link #HEADER} may be mandatory too. */
  static final Set<String> KNOWN = Set.of(
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE_ETAG,
      CreateFileOptionKeys.FS_OPTION_CREATE_IN_CLOSE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONTENT_TYPE,
      PERFORMANCE,
      HEADER);

  /** Returns the options of a file without further ones. */
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

  /** Returns whether to look for an existing file before the first byte is written. */
  boolean looksForFile() {
    return !overwrites && !skipsChecks && !isConditional && version.isEmpty();
  }

  /** Returns whether to look for a directory of the same name. */
  boolean looksForDirectory() {
    return !skipsChecks && !isConditional && version.isEmpty();
  }

  /**
   * Returns the options for the object. If nothing may be replaced, the store enforces that too. So another writer who
   * comes between the lookup and the file's end is not overwritten.
   */
  PutOptions put(PutOptions base) {
    PutOptions put = described(base);
    if (version.isPresent()) {
      return put.ifVersion(version.get());
    }
    return isConditional || !overwrites ? put.ifAbsent() : put;
  }

  /** Returns the properties of the object, without a condition. */
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
