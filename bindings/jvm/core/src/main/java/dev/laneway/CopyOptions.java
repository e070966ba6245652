package dev.laneway;

import java.util.Objects;

/** Options for copying or renaming an object. Each setter returns new options. */
public final class CopyOptions {
  /** Replaces an existing destination, and copies all properties of the source. */
  public static final CopyOptions NONE = new CopyOptions(PutOptions.NONE, null);

  private final PutOptions put;
  private final Bucket bucket;

  private CopyOptions(PutOptions put, Bucket bucket) {
    this.put = put;
    this.bucket = bucket;
  }

  /**
   * Sets properties of the copy, and a condition on its destination. All other properties are copied from the source.
   */
  public CopyOptions put(PutOptions options) {
    return new CopyOptions(Objects.requireNonNull(options, "options"), bucket);
  }

  /** Copies only if the destination doesn't exist. Otherwise the call fails with {@link ErrorKind#ALREADY_EXISTS}. */
  public CopyOptions ifAbsent() {
    return put(put.ifAbsent());
  }

  /** Copies into another bucket. The destination's key is then below that bucket's prefix. */
  public CopyOptions into(Bucket bucket) {
    return new CopyOptions(put, Objects.requireNonNull(bucket, "bucket"));
  }

  PutOptions put() {
    return put;
  }

  Bucket into() {
    return bucket;
  }
}
