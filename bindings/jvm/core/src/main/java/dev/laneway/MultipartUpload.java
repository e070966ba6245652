package dev.laneway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

/**
 * An unfinished multipart upload in the store. Its parts may be sent in any order, several at once, and by any process.
 * Other processes open the upload by its id, with {@link Bucket#multipart}. Nothing is visible in the store before
 * {@link #complete} has succeeded. The store keeps the upload, and charges for it, until it is completed or aborted.
 * This object needs no closing.
 */
public final class MultipartUpload {
  private final Bucket bucket;
  private final Handle handle;
  private final String key;
  private final String id;

  MultipartUpload(Bucket bucket, Handle handle, String key, String id) {
    this.bucket = bucket;
    this.handle = handle;
    this.key = key;
    this.id = id;
  }

  /** Returns the key of the object that the upload will create. */
  public String key() {
    return key;
  }

  /** Returns the id, with which any process can open the upload. It isn't secret. */
  public String id() {
    return id;
  }

  /**
   * Sends a part with its checksum. {@code number} is from 1 to 10000. Each part except for the last one must have at
   * least 5 MiB. A part replaces an earlier part with the same number. The same rules hold for the buffer as in {@link
   * Bucket#put}.
   *
   * @return the argument for {@link #complete}, as text that can be passed to another process
   */
  public String uploadPart(int number, ByteBuffer bytes) throws IOException {
    return partCall(number, bytes).await();
  }

  /** Does the same as {@link #uploadPart}. */
  public CompletableFuture<String> uploadPartAsync(int number, ByteBuffer bytes) {
    return partCall(number, bytes).asFuture();
  }

  /**
   * Completes the object from these parts, in the order of their numbers, then compares the stored object with the sent
   * bytes. Without parts, the object is empty.
   */
  public Written complete(Collection<String> parts) throws IOException {
    return completeCall(parts).await();
  }

  /** Does the same as {@link #complete}. */
  public CompletableFuture<Written> completeAsync(Collection<String> parts) {
    return completeCall(parts).asFuture();
  }

  /**
   * Aborts the upload and removes its parts. If the upload has already ended, the call fails with {@link
   * ErrorKind#NOT_FOUND}.
   */
  public void abort() throws IOException {
    abortCall().await();
  }

  /** Does the same as {@link #abort}. */
  public CompletableFuture<Void> abortAsync() {
    return abortCall().asFuture();
  }

  @Override
  public String toString() {
    return "MultipartUpload[" + bucket.url() + key + ", id=" + id + "]";
  }

  private Call<String> partCall(int number, ByteBuffer bytes) {
    Objects.requireNonNull(bytes, "bytes");
    Packed packed = new Packed().text(key).text(id).number(number);
    return Engine.lend(Native.SEND_PART, handle, packed, bytes, Unpacked::text);
  }

  private Call<Written> completeCall(Collection<String> parts) {
    Packed packed = new Packed().text(key).text(id).number(Objects.requireNonNull(parts, "parts").size());
    parts.forEach(part -> packed.argument("part", part));
    return Engine.begin(Native.COMPLETE_MULTIPART, handle, packed, Written::read);
  }

  private Call<Void> abortCall() {
    return Engine.begin(
        Native.ABORT_MULTIPART, handle, new Packed().text(key).text(id), answer -> null);
  }
}
