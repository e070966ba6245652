package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.ErrorKind;
import dev.laneway.LanewayException;
import dev.laneway.MultipartUpload;
import dev.laneway.PutOptions;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.BBPartHandle;
import org.apache.hadoop.fs.BBUploadHandle;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathHandle;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.UploadHandle;
import org.apache.hadoop.fs.impl.AbstractMultipartUploader;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.util.functional.FutureIO;

/** Uploads files in parts, which several processes may send. Uses the store's multipart uploads. */
final class Uploads extends AbstractMultipartUploader {
  private final Bucket bucket;
  private final Keys keys;
  private final Lookup lookup;
  private final PutOptions described;
  private final Tally tally;

  Uploads(Path base, Connection connection, Keys keys, Lookup lookup, Tally tally) {
    super(base);
    this.bucket = connection.bucket();
    this.described = connection.described();
    this.keys = keys;
    this.lookup = lookup;
    this.tally = tally;
  }

  @Override
  public CompletableFuture<UploadHandle> startUpload(Path path) {
    checkPath(path);
    tally.count(StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_INITIATED);
    return FutureIO.eval(() -> handle(path, bucket.beginMultipart(keys.of(path), described)));
  }

  /**
   * Reads a part completely into memory, because it is sent with its checksum and may have to be sent again. So a part
   * must have less than 2 GiB.
   */
  @Override
  public CompletableFuture<PartHandle> putPart(
      UploadHandle upload, int number, boolean isLast, Path path, InputStream from, long bytes) throws IOException {
    checkPutArguments(path, from, number, upload, bytes);
    MultipartUpload under = under(upload, path);
    if (bytes > Integer.MAX_VALUE - 8) {
      throw new PathIOException(path.toString(), "a part of " + bytes + " bytes is too large: the maximum is 2 GiB");
    }
    ByteBuffer part;
    try (from) {
      part = ByteBuffer.wrap(from.readNBytes((int) bytes));
    }
    if (part.remaining() < bytes) {
      throw new EOFException(path + ": a part ended after " + part.remaining() + " of " + bytes + " bytes");
    }
    tally.put();
    return named(path, under.uploadPartAsync(number, part).thenApply(
        text -> BBPartHandle.from(ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)))));
  }

  /** Completes a file, and replaces an existing file. Fails if a directory has that name. */
  @Override
  public CompletableFuture<PathHandle> complete(UploadHandle upload, Path path, Map<Integer, PartHandle> parts)
      throws IOException {
    checkPath(path);
    checkPartHandles(parts);
    MultipartUpload under = under(upload, path);
    List<String> named = new TreeMap<>(parts).values().stream().map(Uploads::text).toList();
    if (named.stream().distinct().count() < named.size()) {
      throw new IllegalArgumentException("a part of " + path + " is listed twice");
    }
    String key = keys.of(path);
    return named(path, lookup.folder(key).thenCompose(folder -> folder.isPresent()
        ? CompletableFuture.failedFuture(new PathIOException(path.toString(), "is a directory"))
        : under.completeAsync(named).thenApply(
            written -> (PathHandle) new PinnedHandle(key, written.version()))));
  }

  @Override
  public CompletableFuture<Void> abort(UploadHandle upload, Path path) throws IOException {
    checkPath(path);
    tally.count(StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_ABORTED);
    return named(path, under(upload, path).abortAsync());
  }

  /** Returns -1 on Azure, which has no list of uploads. */
  @Override
  public CompletableFuture<Integer> abortUploadsUnderPath(Path path) {
    checkPath(path);
    return FutureIO.eval(() -> {
      List<MultipartUpload> uploads;
      try {
        uploads = bucket.multipartUploads(Keys.inside(keys.of(path)));
      } catch (LanewayException unlisted) {
        if (unlisted.kind() == ErrorKind.UNSUPPORTED) {
          return -1;
        }
        throw unlisted;
      }
      List<CompletableFuture<Void>> aborts = uploads.stream().map(MultipartUpload::abortAsync).toList();
      int aborted = 0;
      for (CompletableFuture<Void> abort : aborts) {
        try {
          Failures.await(path, abort);
          aborted++;
        } catch (IOException failed) {
          if (!Failures.isNotFound(failed)) {
            throw failed;
          }
        }
      }
      return aborted;
    });
  }

  @Override
  public IOStatistics getIOStatistics() {
    return tally.getIOStatistics();
  }

  private MultipartUpload under(UploadHandle upload, Path path) {
    checkUploadId(upload.toByteArray());
    return bucket.multipart(keys.of(path), new String(upload.toByteArray(), StandardCharsets.UTF_8));
  }

  private static UploadHandle handle(Path path, MultipartUpload begun) {
    return BBUploadHandle.from(ByteBuffer.wrap(begun.id().getBytes(StandardCharsets.UTF_8)));
  }

  private static String text(PartHandle part) {
    return new String(part.toByteArray(), StandardCharsets.UTF_8);
  }

  /** Returns the same future, with failures as Hadoop's exceptions. */
  private static <T> CompletableFuture<T> named(Path path, CompletableFuture<? extends T> future) {
    CompletableFuture<T> named = new CompletableFuture<>();
    future.whenComplete((done, failure) -> {
      if (failure == null) {
        named.complete(done);
      } else {
        named.completeExceptionally(of(path, failure));
      }
    });
    return named;
  }

  /** Converts a failure. If the library didn't issue the upload's id, the upload is reported as missing. */
  private static IOException of(Path path, Throwable failure) {
    boolean isUnknown =
        Failures.unwrapped(failure) instanceof LanewayException failed && failed.kind() == ErrorKind.USAGE;
    return isUnknown ? new FileNotFoundException(path + ": " + failure.getMessage()) : Failures.of(path, failure);
  }
}
