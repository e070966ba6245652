package dev.laneway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/**
 * An upload in parts that is under way in the store. Its parts may come in any order, several at once, and from other processes, which get at it by {@link
 * Bucket#multipart} and its id. Nothing can be seen in the store before {@link #complete} has ended well. It stays in the store, and is paid for there,
 * until it is completed or aborted; it needs no closing here.
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

  /** The key of the object that it is to become. */
  public String key() {
    return key;
  }

  /** What it is found again by, in any process: no secret. */
  public String id() {
    return id;
  }

  /**
   * Sends a part with its checksum: {@code number} from 1 to 10000, at least 5 MiB unless it is the last one. Sent again under its number it is replaced. The
   * buffer is treated as {@link Bucket#put} treats it.
   *
   * @return what {@link #complete} takes, as text that can be handed to another process
   */
  public String uploadPart(int number, ByteBuffer bytes) throws IOException {
    return partCall(number, bytes).await();
  }

  /** As {@link #uploadPart}. */
  public CompletableFuture<String> uploadPartAsync(int number, ByteBuffer bytes) {
    return partCall(number, bytes).asFuture();
  }

  /** Makes the object of these parts, in the order of their numbers, and compares what the store then has with what was sent. Of no parts it is empty. */
  public Written complete(Collection<String> parts) throws IOException {
    return completeCall(parts).await();
  }

  /** As {@link #complete}. */
  public CompletableFuture<Written> completeAsync(Collection<String> parts) {
    return completeCall(parts).asFuture();
  }

  /** Gives it up, and with it its parts. One that has ended is not found. */
  public void abort() throws IOException {
    abortCall().await();
  }

  /** As {@link #abort}. */
  public CompletableFuture<Void> abortAsync() {
    return abortCall().asFuture();
  }

  @Override
  public String toString() {
    return "MultipartUpload[" + bucket.url() + key + ", id=" + id + "]";
  }

  private Call<String> partCall(int number, ByteBuffer bytes) {
    Packed packed = new Packed().text(key).text(id).number(number);
    return Engine.lend(Native.SEND_PART, handle, packed, bytes, Unpacked::text);
  }

  private Call<Written> completeCall(Collection<String> parts) {
    Packed packed = new Packed().text(key).text(id).number(parts.size());
    parts.forEach(packed::text);
    return Engine.begin(Native.COMPLETE_MULTIPART, handle, packed, Written::read);
  }

  private Call<Void> abortCall() {
    return Engine.begin(
        Native.ABORT_MULTIPART, handle, new Packed().text(key).text(id), answer -> null);
  }
}
