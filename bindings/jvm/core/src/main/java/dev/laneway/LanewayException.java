package dev.laneway;

import java.io.IOException;

/** A call that failed. Its message names the URL and the cause, and holds no secret. */
public final class LanewayException extends IOException {
  private static final long serialVersionUID = 1L;

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

  /** What went wrong, as far as a caller decides by it. */
  public ErrorKind kind() {
    return kind;
  }

  /** What it was about; {@code null} where that is no object, bucket or file. */
  public String url() {
    return url;
  }

  /** The status of the answer that it was; 0 where there was none. */
  public int status() {
    return status;
  }

  /** The store's own code, such as {@code NoSuchKey}; {@code null} where it gave none. */
  public String serviceCode() {
    return serviceCode;
  }

  /** How many attempts were made. */
  public int attempts() {
    return attempts;
  }

  /** Whether the same may succeed later. */
  public boolean isRetryable() {
    return isRetryable;
  }

  /** Whether the object, bucket or path isn't there. */
  public boolean isNotFound() {
    return kind == ErrorKind.NOT_FOUND;
  }
}
