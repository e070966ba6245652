package dev.laneway.hadoop;

import java.io.IOException;

/**
 * The bucket of a filesystem doesn't exist at the endpoint. This is not a {@link java.io.FileNotFoundException}, so
 * {@code exists} doesn't take a mistyped bucket for an empty one.
 */
public final class UnknownStoreException extends IOException {
  private static final long serialVersionUID = 1L;

  UnknownStoreException(String message, Throwable cause) {
    super(message, cause);
  }
}
