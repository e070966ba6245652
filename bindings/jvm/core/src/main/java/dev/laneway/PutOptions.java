package dev.laneway;

import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** Properties of a new object, and a condition on its destination. Each setter returns new options. */
public final class PutOptions {
  /** No properties. The content type is guessed from the key. */
  public static final PutOptions NONE = new PutOptions(new TreeMap<>(), new TreeMap<>(), new TreeMap<>());

  private final TreeMap<String, String> attributes;
  private final TreeMap<String, String> metadata;
  private final TreeMap<String, String> tags;

  private PutOptions(
      TreeMap<String, String> attributes, TreeMap<String, String> metadata, TreeMap<String, String> tags) {
    this.attributes = attributes;
    this.metadata = metadata;
    this.tags = tags;
  }

  /**
   * Writes only if the object doesn't exist. Otherwise the call fails with {@link ErrorKind#ALREADY_EXISTS}. A call
   * refuses this together with {@link #ifVersion}.
   */
  public PutOptions ifAbsent() {
    return with("if-absent", "");
  }

  /**
   * Replaces only this version of the object. If the object has another version, the call fails with {@link
   * ErrorKind#PRECONDITION}. If the object doesn't exist, the call fails with {@link ErrorKind#PRECONDITION} on GCS,
   * and with {@link ErrorKind#NOT_FOUND} on S3. A call refuses this together with {@link #ifAbsent}.
   */
  public PutOptions ifVersion(String version) {
    return with("if-version", version);
  }

  /** {@code Content-Type}. */
  public PutOptions contentType(String value) {
    return with("content-type", value);
  }

  /** {@code Content-Encoding}. */
  public PutOptions contentEncoding(String value) {
    return with("content-encoding", value);
  }

  /** {@code Content-Disposition}. */
  public PutOptions contentDisposition(String value) {
    return with("content-disposition", value);
  }

  /** {@code Content-Language}. */
  public PutOptions contentLanguage(String value) {
    return with("content-language", value);
  }

  /** {@code Cache-Control}. */
  public PutOptions cacheControl(String value) {
    return with("cache-control", value);
  }

  /** Sets the storage class, by the store's name for it. */
  public PutOptions storageClass(String value) {
    return with("storage-class", value);
  }

  /** Sets a canned ACL, by the store's name for it. */
  public PutOptions acl(String value) {
    return with("acl", value);
  }

  /** Sets the key of the key management service (KMS) that encrypts the object, by the store's name for it. */
  public PutOptions kmsKey(String value) {
    return with("kms-key", value);
  }

  /** Adds an entry to the user metadata. */
  public PutOptions metadata(String name, String value) {
    return new PutOptions(attributes, and(metadata, name, Objects.requireNonNull(value, "value")), tags);
  }

  /** Adds entries to the user metadata. */
  public PutOptions metadata(Map<String, String> pairs) {
    PutOptions options = this;
    for (Map.Entry<String, String> pair : pairs.entrySet()) {
      options = options.metadata(pair.getKey(), pair.getValue());
    }
    return options;
  }

  /** Adds an S3 tag. */
  public PutOptions tag(String name, String value) {
    return new PutOptions(attributes, metadata, and(tags, name, Objects.requireNonNull(value, "value")));
  }

  private PutOptions with(String name, String value) {
    Objects.requireNonNull(value, () -> "PutOptions." + OptionNames.camel(name, '-'));
    return new PutOptions(and(attributes, name, value), metadata, tags);
  }

  private static TreeMap<String, String> and(Map<String, String> had, String name, String value) {
    TreeMap<String, String> more = new TreeMap<>(had);
    more.put(Objects.requireNonNull(name, "name"), value);
    return more;
  }

  @Override
  public String toString() {
    return "PutOptions" + attributes.keySet();
  }

  void write(Packed to) {
    to.texts(attributes).texts(metadata).texts(tags);
  }
}
