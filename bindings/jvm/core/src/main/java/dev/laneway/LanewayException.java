package dev.laneway;

import java.io.IOException;
import java.util.Set;

/** A call that failed. Its message names the URL and the cause, and contains no secret. */
public final class LanewayException extends IOException {
  private static final long serialVersionUID = 1L;

  /** The codes of S3 and Azure for a missing bucket. */
  private static final Set<String> BUCKET_MISSING = Set.of("ContainerNotFound", "NoSuchBucket");

  private final ErrorKind kind;
  private final String url;
  private final int status;
  private final String serviceCode;
  private final int attempts;
  private final boolean isRetryable;

  LanewayException(
      ErrorKind kind,
      String message,
      String url,
      int status,
      String serviceCode,
      int attempts,
      boolean isRetryable) {
    super(message);
    this.kind = kind;
    this.url = url;
    this.status = status;
    this.serviceCode = serviceCode;
    this.attempts = attempts;
    this.isRetryable = isRetryable;
  }

  LanewayException(ErrorKind kind, String message) {
    this(kind, message, null, 0, null, 0, false);
  }

  /** Returns the kind of the failure. */
  public ErrorKind kind() {
    return kind;
  }

  /** Returns the object, bucket or file that the failure concerns, or {@code null} if it concerns none. */
  public String url() {
    return url;
  }

  /** Returns the HTTP status of the answer, or 0 if there was none. */
  public int status() {
    return status;
  }

  /** Returns the store's error code, such as {@code NoSuchKey}, or {@code null} if the answer has none. */
  public String serviceCode() {
    return serviceCode;
  }

  /** Returns how many attempts were made. */
  public int attempts() {
    return attempts;
  }

  /** Returns whether the same call may succeed later. */
  public boolean isRetryable() {
    return isRetryable;
  }

  /** Returns whether the object, bucket or path doesn't exist. */
  public boolean isNotFound() {
    return kind == ErrorKind.NOT_FOUND;
  }

  /** Returns whether the store says that the bucket itself doesn't exist. An answer to a HEAD can't say so. */
  public boolean isMissingBucket() {
    boolean isCodeOfBuckets = serviceCode != null && BUCKET_MISSING.contains(serviceCode);
    return isNotFound() && (isCodeOfBuckets || getMessage().contains("bucket does not exist"));
  }
}
