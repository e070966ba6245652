package dev.laneway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/**
 * A bucket, or the part of a bucket below a prefix. Laneway puts the prefix in front of every key. A bucket needs no
 * closing, and any number of threads may use it.
 *
 * <p>Keys are kept byte for byte: nothing is normalised, and no slash is put between prefix and key. So the prefix of a
 * folder must end with a slash.
 *
 * <p>If the thread is interrupted, blocking methods throw an {@link java.io.InterruptedIOException}, and the thread's
 * interrupt flag stays set. Other failures are {@link LanewayException}s.
 */
public final class Bucket {
  /** The maximum number of keys that are passed to the engine at a time. */
  private static final int KEYS_AT_ONCE = 50_000;

  private final Handle handle;
  private final String url;

  private Bucket(Handle handle, String url) {
    this.handle = handle;
    this.url = url;
  }

  static Bucket of(Handle laneway, String url) throws LanewayException {
    Unpacked made = Engine.now(Native.bucket(laneway.number(), new Packed().argument("url", url).bytes()));
    long number = made.number();
    return new Bucket(Handle.quiet(number), made.text());
  }

  /** Returns the bucket's URL, with the prefix. */
  public String url() {
    return url;
  }

  /** Returns an object's metadata, with one request and without its bytes. */
  public ObjectMeta head(String key) throws IOException {
    return headCall(key).await();
  }

  /** Does the same as {@link #head}. */
  public CompletableFuture<ObjectMeta> headAsync(String key) {
    return headCall(key).asFuture();
  }

  /** Opens the current version of an object for reads at any position. Sends one request. */
  public ObjectReader open(String key) throws IOException {
    return open(key, OpenOptions.NONE);
  }

  /**
   * Opens one version of an object for reads at any position. For a {@linkplain OpenOptions#known known} object, sends
   * no request.
   */
  public ObjectReader open(String key, OpenOptions options) throws IOException {
    return openCall(key, options).await();
  }

  /** Does the same as {@link #open(String, OpenOptions)}. */
  public CompletableFuture<ObjectReader> openAsync(String key, OpenOptions options) {
    return openCall(key, options).asFuture();
  }

  /**
   * Reads an object from its beginning. The result has the metadata and the bytes. Laneway fetches the bytes ahead of
   * the reader.
   */
  public Download get(String key) throws IOException {
    return get(key, GetOptions.NONE);
  }

  /** Reads an object, or some of its bytes, in order. */
  public Download get(String key, GetOptions options) throws IOException {
    return getCall(key, options).await();
  }

  /**
   * Does the same as {@link #get(String, GetOptions)}. The future is done once the store has answered; the bytes arrive
   * after that.
   */
  public CompletableFuture<Download> getAsync(String key, GetOptions options) {
    return getCall(key, options).asFuture();
  }

  /**
   * Writes the buffer's remaining bytes as an object, then compares the stored object's checksum with that of these
   * bytes. The object exists completely or not at all. The buffer's position doesn't change. The engine sends the bytes
   * of a direct buffer without a copy, so they must not change before the call has ended. It copies the bytes of any
   * other buffer once.
   */
  public Written put(String key, ByteBuffer bytes, PutOptions options) throws IOException {
    return putCall(key, bytes, options).await();
  }

  /** Does the same as {@link #put}. */
  public CompletableFuture<Written> putAsync(String key, ByteBuffer bytes, PutOptions options) {
    return putCall(key, bytes, options).asFuture();
  }

  /**
   * Returns a writer for an object whose bytes aren't all known yet. It sends full parts while the caller writes
   * further bytes.
   */
  public ObjectWriter writer(String key, PutOptions options) throws LanewayException {
    return ObjectWriter.of(this, handle, key, options);
  }

  /** Lists the objects whose keys begin with {@code prefix}, as {@link #list(String, ListOptions)} does. */
  public Stream<ObjectMeta> list(String prefix) {
    return list(prefix, ListOptions.NONE);
  }

  /**
   * Lists the objects whose keys begin with {@code prefix}, in the byte order of their keys, while pages arrive. A
   * failure is an {@link java.io.UncheckedIOException} of the stream. A stream that isn't read to its end must be
   * closed.
   */
  public Stream<ObjectMeta> list(String prefix, ListOptions options) {
    return ListedObjects.stream(this, handle, prefix, options);
  }

  /**
   * Lists the entries directly below {@code prefix}, which usually ends in a slash: objects, and the prefixes of
   * objects further down.
   */
  public Listing listWithDelimiter(String prefix) throws IOException {
    return listWithDelimiter(prefix, ListOptions.NONE);
  }

  /** Lists the entries directly below {@code prefix}, limited by the options. */
  public Listing listWithDelimiter(String prefix, ListOptions options) throws IOException {
    return listDirCall(prefix, options).await();
  }

  /** Does the same as {@link #listWithDelimiter(String, ListOptions)}. */
  public CompletableFuture<Listing> listWithDelimiterAsync(String prefix, ListOptions options) {
    return listDirCall(prefix, options).asFuture();
  }

  /** Removes an object. If it doesn't exist, GCS reports a failure and S3 reports success. */
  public void delete(String key) throws IOException {
    deleteCall(key, null).await();
  }

  /**
   * Removes an object only in this version. If the object was replaced, it stays, and the call fails with the kind
   * {@link ErrorKind#PRECONDITION}.
   */
  public void delete(String key, String version) throws IOException {
    deleteCall(key, Objects.requireNonNull(version, "version")).await();
  }

  /** Does the same as {@link #delete(String)}. */
  public CompletableFuture<Void> deleteAsync(String key) {
    return deleteCall(key, null).asFuture();
  }

  /**
   * Removes objects in full batches, and sends several batches at once. If some objects can't be removed, the others
   * are removed nevertheless.
   *
   * @return the failures by key, in the order of the keys; empty if all were removed
   */
  public Map<String, LanewayException> deleteAll(Iterable<String> keys) throws IOException {
    Map<String, LanewayException> failures = new LinkedHashMap<>();
    Iterator<String> left = Objects.requireNonNull(keys, "keys").iterator();
    List<String> some = new ArrayList<>();
    while (left.hasNext()) {
      some.add(left.next());
      if (some.size() == KEYS_AT_ONCE || !left.hasNext()) {
        failures.putAll(deleteSome(some).await());
        some.clear();
      }
    }
    return failures;
  }

  /** Does the same as {@link #deleteAll} with a list of keys. */
  public CompletableFuture<Map<String, LanewayException>> deleteAllAsync(List<String> keys) {
    return deleteSome(keys).asFuture();
  }

  /** Copies an object inside the store. The bytes pass through this machine only if the store can't copy it. */
  public Written copy(String from, String to) throws IOException {
    return copy(from, to, CopyOptions.NONE);
  }

  /** Copies an object with options. */
  public Written copy(String from, String to, CopyOptions options) throws IOException {
    return copyCall(Native.COPY, from, to, options).await();
  }

  /**
   * Does the same as {@link #copy(String, String, CopyOptions)}. The caller may begin many copies at once: the engine
   * limits how many of them run.
   */
  public CompletableFuture<Written> copyAsync(String from, String to, CopyOptions options) {
    return copyCall(Native.COPY, from, to, options).asFuture();
  }

  /**
   * Renames an object: copies it, then removes the source in the version that was copied. This takes two requests, and
   * other clients may see both objects in between.
   */
  public Written rename(String from, String to, CopyOptions options) throws IOException {
    return copyCall(Native.RENAME, from, to, options).await();
  }

  /** Does the same as {@link #rename}. */
  public CompletableFuture<Written> renameAsync(String from, String to, CopyOptions options) {
    return copyCall(Native.RENAME, from, to, options).asFuture();
  }

  /**
   * Begins an upload in parts. The caller numbers the parts, sends them from this process or others, and lists them
   * when it completes the upload. The upload takes no condition, because GCS's multipart uploads have none.
   */
  public MultipartUpload beginMultipart(String key, PutOptions options) throws IOException {
    Packed packed = new Packed().argument("key", key);
    Objects.requireNonNull(options, "options").write(packed);
    String id = Engine.begin(Native.BEGIN_MULTIPART, handle, packed, Unpacked::text).await();
    return new MultipartUpload(this, handle, key, id);
  }

  /** Returns an upload that was begun before, by its key and {@linkplain MultipartUpload#id() id}. Sends no request. */
  public MultipartUpload multipart(String key, String id) {
    return new MultipartUpload(this, handle, Objects.requireNonNull(key, "key"), Objects.requireNonNull(id, "id"));
  }

  /** Lists the multipart uploads that were neither completed nor aborted, for keys that begin with {@code prefix}. */
  public List<MultipartUpload> multipartUploads(String prefix) throws IOException {
    Packed packed = new Packed().argument("prefix", prefix);
    return Engine.begin(
            Native.LIST_MULTIPART,
            handle,
            packed,
            answer -> {
              List<MultipartUpload> uploads = new ArrayList<>();
              while (answer.hasMore()) {
                uploads.add(new MultipartUpload(this, handle, answer.text(), answer.text()));
              }
              return uploads;
            })
        .await();
  }

  /** Contains no secret. */
  @Override
  public String toString() {
    return "Bucket[" + url + "]";
  }

  private Call<ObjectMeta> headCall(String key) {
    return Engine.begin(Native.HEAD, handle, new Packed().argument("key", key), ObjectMeta::read);
  }

  private Call<ObjectReader> openCall(String key, OpenOptions options) {
    Packed packed = new Packed().argument("key", key);
    Objects.requireNonNull(options, "options").write(packed);
    return Engine.begin(Native.OPEN, handle, packed, answer -> ObjectReader.read(url + key, answer));
  }

  private Call<Download> getCall(String key, GetOptions options) {
    Packed packed = new Packed().argument("key", key);
    Objects.requireNonNull(options, "options").write(packed);
    return Engine.begin(Native.GET, handle, packed, answer -> Download.read(url + key, answer));
  }

  private Call<Written> putCall(String key, ByteBuffer bytes, PutOptions options) {
    Objects.requireNonNull(bytes, "bytes");
    Packed packed = new Packed().argument("key", key);
    Objects.requireNonNull(options, "options").write(packed);
    return Engine.lend(Native.PUT, handle, packed, bytes, Written::read);
  }

  private Call<Listing> listDirCall(String prefix, ListOptions options) {
    Packed packed = new Packed().argument("prefix", prefix);
    Objects.requireNonNull(options, "options").write(packed);
    return Engine.begin(Native.LIST_DIR, handle, packed, Listing::read);
  }

  private Call<Void> deleteCall(String key, String version) {
    return Engine.begin(
        Native.DELETE, handle, new Packed().argument("key", key).maybeText(version), answer -> null);
  }

  private Call<Map<String, LanewayException>> deleteSome(List<String> keys) {
    Packed packed = new Packed().number(Objects.requireNonNull(keys, "keys").size());
    keys.forEach(key -> packed.argument("key", key));
    return Engine.begin(
        Native.DELETE_MANY,
        handle,
        packed,
        answer -> {
          Map<String, LanewayException> failures = new LinkedHashMap<>();
          while (answer.hasMore()) {
            failures.put(answer.text(), answer.failure());
          }
          return failures;
        });
  }

  private Call<Written> copyCall(int verb, String from, String to, CopyOptions options) {
    Objects.requireNonNull(options, "options");
    Bucket into = options.into() == null ? this : options.into();
    Packed packed = new Packed().argument("from", from).argument("to", to).number(into.handle.number());
    options.put().write(packed);
    return Engine.begin(verb, handle, packed, Written::read, into);
  }
}
