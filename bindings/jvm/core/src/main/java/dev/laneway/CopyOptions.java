package dev.laneway;

import java.util.Objects;

/** How an object is copied or renamed. Each setter gives other options. */
public final class CopyOptions {
  /** Over whatever is there, with everything as the source's. */
  public static final CopyOptions NONE = new CopyOptions(PutOptions.NONE, null);

  private final PutOptions put;
  private final Bucket bucket;

  private CopyOptions(PutOptions put, Bucket bucket) {
    this.put = put;
    this.bucket = bucket;
  }

  /** What the copy is to be, and in which state its place has to be; what isn't said is as the source's. */
  public CopyOptions put(PutOptions options) {
    return new CopyOptions(Objects.requireNonNull(options, "options"), bucket);
  }

  /** Only where there is no object: else a failure of kind {@link ErrorKind#ALREADY_EXISTS}. */
  public CopyOptions ifAbsent() {
    return put(put.ifAbsent());
  }

  /** Into another bucket, with its prefix. */
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
