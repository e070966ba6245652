package dev.laneway.iceberg;

import java.util.Locale;
import org.apache.iceberg.exceptions.ValidationException;

/**
 * A location in a table's metadata, which names an object or a prefix.
 *
 * @param text The location as it was given.
 * @param store The store that contains it.
 * @param bucket The bucket's name, or Azure's {@code container@host}.
 * @param key The text after the bucket's name, unchanged.
 */
record Location(String text, Store store, String bucket, String key) {
  /** The supported stores, each with its own protocol. */
  enum Store {
    S3("s3"),
    GCS("gcs"),
    AZURE("adls");

    /** The prefix of the properties of Iceberg's own FileIO for this store. It is also the name of the metrics. */
    final String family;

    Store(String family) {
      this.family = family;
    }
  }

  /**
   * Parses a location.
   *
   * @throws ValidationException if it contains no bucket, or no scheme of a supported store
   */
  static Location of(String text) {
    int scheme = text.indexOf("://");
    if (scheme < 0) {
      throw new ValidationException("%s: a location must begin with a scheme, such as s3:// or gs://", text);
    }
    Store store = switch (text.substring(0, scheme).toLowerCase(Locale.ROOT)) {
      case "s3", "s3a", "s3n" -> Store.S3;
      case "gs" -> Store.GCS;
      case "abfs", "abfss", "az", "wasb", "wasbs" -> Store.AZURE;
      default -> throw new ValidationException(
          "%s: the scheme must be gs, s3, s3a, s3n, abfs, abfss, az, wasb or wasbs", text);
    };
    int slash = text.indexOf('/', scheme + 3);
    String bucket = text.substring(scheme + 3, slash < 0 ? text.length() : slash);
    if (bucket.isEmpty()) {
      throw new ValidationException("%s: the location contains no bucket", text);
    }
    return new Location(text, store, bucket, slash < 0 ? "" : text.substring(slash + 1));
  }

  /** Returns the location of another key of the bucket, with the same scheme. */
  String sibling(String otherKey) {
    return text.substring(0, text.indexOf("://") + 3) + bucket + "/" + otherKey;
  }
}
