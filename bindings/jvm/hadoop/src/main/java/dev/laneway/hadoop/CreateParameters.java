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
 * @param overwrites True if an existing file may be replaced.
 * @param isRecursive True if the directories above need not exist.
 * @param skipsChecks True if nothing is looked up before the file is written. Without {@code overwrites}, the store
 *     then refuses to replace an existing file when the stream is closed.
 * @param isConditional True if the file is created only if none exists when the stream is closed.
 * @param version The only version of an existing file that may be replaced.
 * @param headers Headers of the new object.
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

  /** The prefix of S3A's options that set headers of the object. */
  static final String HEADER = "fs.s3a.create.header";

  /** The options that a caller may set with {@code must}. Options that begin with {@link #HEADER} are also allowed. */
  static final Set<String> KNOWN = Set.of(
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE_ETAG,
      CreateFileOptionKeys.FS_OPTION_CREATE_IN_CLOSE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONTENT_TYPE,
      PERFORMANCE,
      HEADER);

  /** Returns the options of a {@code create} call, which has no other options. */
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
      throw new IllegalArgumentException("the ETag of the file to replace must not be empty");
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
   * Returns the options for the upload. If no file may be replaced, the store enforces that too. So a file that another
   * writer creates between the lookup and the end of the upload is not overwritten.
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
