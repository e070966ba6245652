package dev.laneway.hadoop;

import dev.laneway.ErrorKind;
import dev.laneway.LanewayException;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.file.AccessDeniedException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;

/** Converts the library's failures to Hadoop's exceptions, with the library's exception as the cause. */
final class Failures {
  private Failures() {}

  /**
   * Returns the exception for a failure about a path. If Hadoop has no exception for the failure, returns the failure
   * itself.
   */
  static IOException of(Path path, Throwable failure) {
    Throwable cause = unwrapped(failure);
    if (cause instanceof LanewayException failed) {
      return of(path.toString(), failed);
    }
    if (cause instanceof IOException known) {
      return known;
    }
    if (cause instanceof CancellationException) {
      return interrupted(path.toString(), cause);
    }
    return new PathIOException(path.toString(), cause);
  }

  /**
   * Returns whether a failure means that the file doesn't exist in the bucket. If the bucket itself is missing, returns
   * false.
   */
  static boolean isNotFound(Throwable failure) {
    Throwable cause = unwrapped(failure);
    return cause instanceof FileNotFoundException
        || (cause instanceof LanewayException failed && failed.isNotFound() && !failed.isMissingBucket());
  }

  /** Returns whether a failure means that the destination doesn't have the required state. */
  static boolean isConflict(Throwable failure) {
    return unwrapped(failure) instanceof LanewayException failed
        && (failed.kind() == ErrorKind.ALREADY_EXISTS || failed.kind() == ErrorKind.PRECONDITION);
  }

  /** Returns the cause inside the wrappers of futures. */
  static Throwable unwrapped(Throwable failure) {
    Throwable cause = failure;
    while ((cause instanceof CompletionException || cause instanceof ExecutionException) && cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause;
  }

  /**
   * Waits for a future's result. If the thread is interrupted, cancels the future and keeps the interrupt flag set.
   *
   * @throws IOException its failure, as {@link #of} converts it
   */
  static <T> T await(Path path, CompletableFuture<T> future) throws IOException {
    try {
      return future.get();
    } catch (InterruptedException stop) {
      future.cancel(true);
      Thread.currentThread().interrupt();
      throw interrupted(path.toString(), stop);
    } catch (ExecutionException | CancellationException failed) {
      throw of(path, failed);
    }
  }

  private static IOException of(String path, LanewayException failed) {
    String message = inHadoop(path, failed.getMessage());
    return switch (failed.kind()) {
      case NOT_FOUND -> failed.isMissingBucket()
          ? new UnknownStoreException(path + ": " + message, failed)
          : caused(new FileNotFoundException(path + ": " + message), failed);
      case ALREADY_EXISTS -> caused(new FileAlreadyExistsException(path + ": " + message), failed);
      case PERMISSION, UNAUTHENTICATED -> caused(new AccessDeniedException(path, null, message), failed);
      case INVALID_RANGE -> caused(new EOFException(path + ": " + message), failed);
      case CANCELLED -> interrupted(path, failed);
      case UNSUPPORTED -> caused(new PathIOException(path, message), failed);
      default -> message.equals(failed.getMessage()) ? failed : new IOException(path + ": " + message, failed);
    };
  }

  /**
   * Returns a message in which the names of Hadoop's keys, or of variables, replace those of the builder's settings.
   */
  private static String inHadoop(String path, String message) {
    boolean isGcs = path.startsWith("gs:") || path.startsWith("laneway+gs:");
    return message
        .replace("Laneway.Builder.bandwidthLimit", "fs.laneway.bandwidth.limit")
        .replace("Laneway.Builder.connectionsMax", "fs.laneway.connections.maximum")
        .replace("Laneway.Builder.memory", "fs.laneway.memory")
        .replace("Laneway.Builder.customerKey", isGcs ? "fs.gs.encryption.key" : "fs.s3a.encryption.key")
        .replace("Laneway.Builder.header", "fs.gs.storage.http.headers")
        .replace("Laneway.Builder.httpProxy", isGcs ? "fs.gs.proxy.address" : "fs.s3a.proxy.host")
        .replace("Laneway.Builder.httpsProxy", isGcs ? "fs.gs.proxy.address" : "fs.s3a.proxy.host")
        .replace("Laneway.Builder.impersonate", "fs.gs.auth.impersonation.service.account")
        .replace("Laneway.Builder.region", "fs.s3a.endpoint.region")
        .replace("Laneway.Builder.serviceAccountKey", "fs.gs.auth.service.account.json.keyfile")
        .replace("Laneway.Builder.userProject", "fs.gs.requester.pays.project.id")
        .replace("Laneway.Builder.s3Endpoint", "fs.s3a.endpoint")
        .replace("Laneway.Builder.gcsEndpoint", "fs.gs.storage.root.url")
        .replace("Laneway.Builder.anonymous", isGcs
            ? "fs.gs.auth.type=UNAUTHENTICATED"
            : "fs.s3a.aws.credentials.provider=org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider")
        .replace("Laneway.Builder.profile", "AWS_PROFILE")
        .replace("Laneway.Builder.caFile", "SSL_CERT_FILE")
        .replace("Laneway.Builder.retryFor", "LANEWAY_RETRY_FOR");
  }

  private static IOException interrupted(String path, Throwable cause) {
    return caused(new InterruptedIOException(path + ": the thread was interrupted"), cause);
  }

  private static <E extends IOException> E caused(E exception, Throwable cause) {
    exception.initCause(cause);
    return exception;
  }
}
