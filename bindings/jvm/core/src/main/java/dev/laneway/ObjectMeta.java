package dev.laneway;

import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** An object's metadata, as the store reports it. */
public final class ObjectMeta {
  private final String key;
  private final long size;
  private final String version;
  private final String etag;
  private final Instant updated;
  private final Map<String, String> attributes;
  private final Map<String, String> metadata;

  ObjectMeta(
      String key,
      long size,
      String version,
      String etag,
      Instant updated,
      Map<String, String> attributes,
      Map<String, String> metadata) {
    this.key = Objects.requireNonNull(key, "key");
    this.size = size;
    this.version = version;
    this.etag = etag;
    this.updated = updated;
    this.attributes = attributes;
    this.metadata = metadata;
  }

  /**
   * Makes the metadata of an object whose size and version are known without a request, such as from a table's list of
   * files.
   */
  public static ObjectMeta of(String key, long size, String version) {
    if (size < 0) {
      throw new IllegalArgumentException("the size must not be negative: " + size);
    }
    return new ObjectMeta(key, size, version, null, null, Map.of(), null);
  }

  /** Returns the object's key, without its bucket's prefix. */
  public String key() {
    return key;
  }

  /** Returns the object's stored size in bytes. */
  public long size() {
    return size;
  }

  /**
   * Returns the object's version, for conditions such as {@link GetOptions#ifVersion}. The version is the generation on
   * GCS, and the ETag without quotes on S3. Returns {@code null} if the store reports none.
   */
  public String version() {
    return version;
  }

  /** Returns the object's ETag without quotes, or {@code null} if the store's answer doesn't contain it. */
  public String etag() {
    return etag;
  }

  /** Returns the time of the object's last change, or {@code null} if the store's answer doesn't contain it. */
  public Instant updated() {
    return updated;
  }

  /** Returns {@code Content-Type}, or {@code null} if the store's answer doesn't contain it, as in S3's listings. */
  public String contentType() {
    return attributes.get("content-type");
  }

  /** Returns {@code Content-Encoding} as stored. */
  public String contentEncoding() {
    return attributes.get("content-encoding");
  }

  /** {@code Content-Disposition}. */
  public String contentDisposition() {
    return attributes.get("content-disposition");
  }

  /** {@code Content-Language}. */
  public String contentLanguage() {
    return attributes.get("content-language");
  }

  /** {@code Cache-Control}. */
  public String cacheControl() {
    return attributes.get("cache-control");
  }

  /** Returns the storage class, by the store's name for it. */
  public String storageClass() {
    return attributes.get("storage-class");
  }

  /**
   * Returns the user metadata, whose names are in lower case on S3. It is {@code null} if the store's answer doesn't
   * contain it, as in GCS's answers to reads and in S3's listings. {@link Bucket#head} always returns it.
   */
  public Map<String, String> metadata() {
    return metadata;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ObjectMeta that
        && size == that.size
        && key.equals(that.key)
        && Objects.equals(version, that.version)
        && Objects.equals(etag, that.etag)
        && Objects.equals(updated, that.updated)
        && attributes.equals(that.attributes)
        && Objects.equals(metadata, that.metadata);
  }

  @Override
  public int hashCode() {
    return Objects.hash(key, size, version);
  }

  @Override
  public String toString() {
    return "ObjectMeta[key=" + key + ", size=" + size + ", version=" + version + ", updated=" + updated + "]";
  }

  static ObjectMeta read(Unpacked from) {
    String key = from.text();
    long size = from.number();
    String version = from.maybeText();
    String etag = from.maybeText();
    Instant updated = from.maybeTime();
    Map<String, String> attributes = from.texts();
    Map<String, String> metadata = from.flag() ? new TreeMap<>(from.texts()) : null;
    return new ObjectMeta(key, size, version, etag, updated, attributes, metadata);
  }

  void write(Packed to) {
    to.text(key).number(size).maybeText(version);
  }
}
