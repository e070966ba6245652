package dev.laneway;

import java.util.Objects;

/** Options for copying or renaming an object. Each setter returns new options. */
public final class CopyOptions {
  /** Replaces an existing object, and keeps all properties of the source. */
  public static final CopyOptions NONE = new CopyOptions(PutOptions.NONE, null);

  private final PutOptions put;
  private final Bucket bucket;

  private CopyOptions(PutOptions put, Bucket bucket) {
    this.put = put;
    this.bucket = bucket;
  }

  /** Sets properties of the copy, and a condition on its destination. Properties that aren't set are the source's. */
  public CopyOptions put(PutOptions options) {
    return new CopyOptions(Objects.requireNonNull(options, "options"), bucket);
  }

  /** Writes only if there is no such object. Otherwise it is a failure of kind {@link ErrorKind#ALREADY_EXISTS}. */
  public CopyOptions ifAbsent() {
    return put(put.ifAbsent());
  }

  /** Copies into another bucket, below its prefix. */
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
