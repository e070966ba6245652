package dev.laneway.faults;

import dev.laneway.Bucket;
import dev.laneway.Download;
import dev.laneway.Job;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import dev.laneway.PutOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * The client and the folders with which an operation runs.
 *
 * @param laneway the operation's client
 * @param bucket a folder of the store
 * @param folder a folder of this machine
 * @param isAsync whether calls are futures
 */
record Scene(Laneway laneway, Bucket bucket, Path folder, boolean isAsync) {
  interface Blocking<T> {
    T of(Bucket bucket) throws IOException;
  }

  interface Async<T> {
    CompletableFuture<T> of(Bucket bucket);
  }

  interface Begun {
    Job by(Laneway laneway) throws LanewayException;
  }

  <T> T of(Async<T> async, Blocking<T> blocking) throws IOException {
    return isAsync ? wait(async.of(bucket)) : blocking.of(bucket);
  }

  /** Returns the result of a future, or throws its failure. */
  <T> T wait(CompletableFuture<T> future) throws IOException {
    try {
      return future.join();
    } catch (CompletionException failure) {
      if (failure.getCause() instanceof IOException cause) {
        throw cause;
      }
      throw failure;
    }
  }

  void run(Begun begun) throws IOException {
    try (Job job = begun.by(laneway)) {
      job.join().orThrow();
    }
  }

  void lay(String key, byte[] bytes) throws IOException {
    bucket.put(key, ByteBuffer.wrap(bytes), PutOptions.NONE);
  }

  /** Returns whether the bytes are the object's, or the bytes that another writer stores instead. */
  boolean isRead(byte[] bytes) {
    return bytes.length == Strike.SMALL.length && isRead(0, ByteBuffer.wrap(bytes));
  }

  boolean isRead(int from, ByteBuffer bytes) {
    byte[] there = Arrays.copyOfRange(Strike.SMALL, from, from + bytes.remaining());
    byte[] inverted = new byte[there.length];
    for (int at = 0; at < there.length; at++) {
      inverted[at] = (byte) ~there[at];
    }
    return bytes.mismatch(ByteBuffer.wrap(there)) == -1 || bytes.mismatch(ByteBuffer.wrap(inverted)) == -1;
  }

  /**
   * Returns the mistake in an object, if there is one. After a success, the object must be {@code done}, and otherwise
   * {@code before}. {@code null} means that the object doesn't exist.
   */
  String holds(String key, boolean isDone, byte[] done, byte[] before) throws IOException {
    byte[] there;
    try (Download download = bucket.get(key)) {
      there = download.bytes();
    } catch (LanewayException failure) {
      if (!failure.isNotFound()) {
        throw failure;
      }
      there = null;
    }
    boolean isRight = Arrays.equals(there, done) || !isDone && Arrays.equals(there, before);
    return isRight ? null : key + " holds " + (there == null ? "nothing" : there.length + " bytes");
  }

  /** Returns the library's failure. A stream may have wrapped it in another exception. */
  static LanewayException failure(Exception thrown) {
    if (thrown instanceof UncheckedIOException unchecked) {
      return failure(unchecked.getCause());
    }
    return thrown instanceof LanewayException failure ? failure : null;
  }
}
