package dev.laneway;

import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** What a new object is to be besides its bytes, and in which state its place has to be. Each setter gives other options. */
public final class PutOptions {
  /** Nothing besides: the content type is guessed from the key. */
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

  /** Only where there is no object: else a failure of kind {@link ErrorKind#ALREADY_EXISTS}. */
  public PutOptions ifAbsent() {
    return with("if-absent", "");
  }

  /** Only over an object in this state: else a failure of kind {@link ErrorKind#PRECONDITION}. */
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

  /** The storage class in the store's own words. */
  public PutOptions storageClass(String value) {
    return with("storage-class", value);
  }

  /** A canned ACL in the store's own words. */
  public PutOptions acl(String value) {
    return with("acl", value);
  }

  /** The key of a key management service that encrypts the object, in the store's own words. */
  public PutOptions kmsKey(String value) {
    return with("kms-key", value);
  }

  /** A pair of the user's own metadata. */
  public PutOptions metadata(String name, String value) {
    return new PutOptions(attributes, and(metadata, name, value), tags);
  }

  /** Pairs of the user's own metadata. */
  public PutOptions metadata(Map<String, String> pairs) {
    PutOptions options = this;
    for (Map.Entry<String, String> pair : pairs.entrySet()) {
      options = options.metadata(pair.getKey(), pair.getValue());
    }
    return options;
  }

  /** A tag of S3's. */
  public PutOptions tag(String name, String value) {
    return new PutOptions(attributes, metadata, and(tags, name, value));
  }

  private PutOptions with(String name, String value) {
    return new PutOptions(and(attributes, name, value), metadata, tags);
  }

  private static TreeMap<String, String> and(Map<String, String> had, String name, String value) {
    TreeMap<String, String> more = new TreeMap<>(had);
    more.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(value, name));
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
