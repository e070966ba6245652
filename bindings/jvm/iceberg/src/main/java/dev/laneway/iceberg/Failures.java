package dev.laneway.iceberg;

import dev.laneway.LanewayException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.exceptions.RuntimeIOException;

/** Converts the library's failures to Iceberg's exceptions, with the library's exception as the cause. */
final class Failures {
  private Failures() {}

  /** Returns the exception for a failure about a location. */
  static RuntimeException of(String location, Throwable failure) {
    Throwable cause = unwrapped(failure);
    if (cause instanceof LanewayException failed) {
      return switch (failed.kind()) {
        case NOT_FOUND -> new NotFoundException(failed, "%s: %s", location, failed.getMessage());
        case ALREADY_EXISTS -> new AlreadyExistsException(failed, "%s: %s", location, failed.getMessage());
        case PERMISSION, UNAUTHENTICATED -> new ForbiddenException(failed, "%s: %s", location, failed.getMessage());
        default -> new RuntimeIOException(failed, "%s: %s", location, failed.getMessage());
      };
    }
    if (cause instanceof RuntimeException known && !(cause instanceof CancellationException)) {
      return known;
    }
    IOException io = cause instanceof IOException known ? known : new IOException(String.valueOf(cause), cause);
    return new RuntimeIOException(io, "%s: %s", location, io.getMessage());
  }

  /** Returns whether a failure means that the object doesn't exist. */
  static boolean isNotFound(Throwable failure) {
    return unwrapped(failure) instanceof LanewayException failed && failed.isNotFound();
  }

  /** Waits for a future's result. If the thread is interrupted, cancels the future and keeps the interrupt flag set. */
  static <T> T await(String location, CompletableFuture<T> future) {
    try {
      return future.get();
    } catch (InterruptedException stop) {
      future.cancel(true);
      Thread.currentThread().interrupt();
      throw new RuntimeIOException(new InterruptedIOException(location + ": the call was interrupted"));
    } catch (ExecutionException | CancellationException failed) {
      throw of(location, failed);
    }
  }

  private static Throwable unwrapped(Throwable failure) {
    Throwable cause = failure;
    while ((cause instanceof CompletionException || cause instanceof ExecutionException) && cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause;
  }
}
