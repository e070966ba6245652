package dev.laneway.iceberg;

import java.util.Locale;
import org.apache.iceberg.exceptions.ValidationException;

/**
 * A location in a table's metadata, which names an object or a prefix.
 *
 * @param text the location as it was given
 * @param store the store that it is in
 * @param bucket the bucket's name
 * @param key the text after the bucket's name, unchanged
 */
record Location(String text, Store store, String bucket, String key) {
  /** The supported stores, each with its own protocol. */
  enum Store {
    S3("s3"),
    GCS("gcs");

    /** The beginning of the properties of Iceberg's own FileIO for it, and the name of its metrics. */
    final String family;

    Store(String family) {
      this.family = family;
    }
  }

  /** @throws ValidationException if it names no object store or no bucket */
  static Location of(String text) {
    int scheme = text.indexOf("://");
    if (scheme < 0) {
      throw new ValidationException("%s is no location in an object store", text);
    }
    Store store = switch (text.substring(0, scheme).toLowerCase(Locale.ROOT)) {
      case "s3", "s3a", "s3n" -> Store.S3;
      case "gs" -> Store.GCS;
      default -> throw new ValidationException("%s: no store is known by its scheme", text);
    };
    int slash = text.indexOf('/', scheme + 3);
    String bucket = text.substring(scheme + 3, slash < 0 ? text.length() : slash);
    if (bucket.isEmpty()) {
      throw new ValidationException("%s names no bucket", text);
    }
    return new Location(text, store, bucket, slash < 0 ? "" : text.substring(slash + 1));
  }

  /** Returns the location of another key of the bucket, with the same scheme. */
  String sibling(String otherKey) {
    return text.substring(0, text.indexOf("://") + 3) + bucket + "/" + otherKey;
  }
}
