package dev.laneway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/**
 * A bucket, or the part of one below a prefix, by which every key is lengthened. It needs no closing, and any number of threads may use it.
 *
 * <p>Keys are kept exactly: nothing is normalised, and no slash is put between prefix and key, so that a prefix that means a folder ends in one.
 *
 * <p>Blocking verbs throw an {@link java.io.InterruptedIOException} where the thread is interrupted, and leave it interrupted; they are {@link
 * LanewayException}s else.
 */
public final class Bucket {
  /** Keys that are handed to the engine at a time. */
  private static final int KEYS_AT_ONCE = 50_000;

  private final Handle handle;
  private final String url;

  private Bucket(Handle handle, String url) {
    this.handle = handle;
    this.url = url;
  }

  static Bucket of(Handle laneway, String url) throws LanewayException {
    Unpacked made = Engine.now(Native.bucket(laneway.number(), new Packed().text(url).bytes()));
    long number = made.number();
    return new Bucket(Handle.quiet(number), made.text());
  }

  /** Its URL, with the prefix. */
  public String url() {
    return url;
  }

  /** What the store knows about an object: one request, and none of its bytes. */
  public ObjectMeta head(String key) throws IOException {
    return headCall(key).await();
  }

  /** As {@link #head}. */
  public CompletableFuture<ObjectMeta> headAsync(String key) {
    return headCall(key).asFuture();
  }

  /** Opens an object for reads at any place, all of them of the version that it has now: one request. */
  public ObjectReader open(String key) throws IOException {
    return open(key, OpenOptions.NONE);
  }

  /** Opens an object for reads at any place, all of one version. Of what is {@linkplain OpenOptions#known known} nothing is asked. */
  public ObjectReader open(String key, OpenOptions options) throws IOException {
    return openCall(key, options).await();
  }

  /** As {@link #open(String, OpenOptions)}. */
  public CompletableFuture<ObjectReader> openAsync(String key, OpenOptions options) {
    return openCall(key, options).asFuture();
  }

  /** Reads an object from its beginning on: what comes back tells its metadata and gives its bytes, which are fetched ahead. */
  public Download get(String key) throws IOException {
    return get(key, GetOptions.NONE);
  }

  /** Reads an object, or some of its bytes, in order. */
  public Download get(String key, GetOptions options) throws IOException {
    return getCall(key, options).await();
  }

  /** As {@link #get(String, GetOptions)}: it is done once the store has answered, and bytes come from then on. */
  public CompletableFuture<Download> getAsync(String key, GetOptions options) {
    return getCall(key, options).asFuture();
  }

  /**
   * Writes an object of the buffer's remaining bytes, and compares what the store then has with what was sent. It is there as a whole or not at all. The
   * buffer's position doesn't change. Out of a direct buffer the bytes go as they lie there, which must not change before the call has ended; those of
   * another are copied once.
   */
  public Written put(String key, ByteBuffer bytes, PutOptions options) throws IOException {
    return putCall(key, bytes, options).await();
  }

  /** As {@link #put}. */
  public CompletableFuture<Written> putAsync(String key, ByteBuffer bytes, PutOptions options) {
    return putCall(key, bytes, options).asFuture();
  }

  /** Writes an object whose bytes are made one after the other, in parts that go while others gather. */
  public ObjectWriter writer(String key, PutOptions options) throws LanewayException {
    return ObjectWriter.of(this, handle, key, options);
  }

  /** The objects whose keys begin with {@code prefix}, in the order of their keys' bytes. As {@link #list(String, ListOptions)}. */
  public Stream<ObjectMeta> list(String prefix) {
    return list(prefix, ListOptions.NONE);
  }

  /**
   * The objects whose keys begin with {@code prefix}, in the order of their keys' bytes, while pages arrive. What fails of it is an {@link
   * java.io.UncheckedIOException} of the stream. A stream that isn't read to its end has to be closed.
   */
  public Stream<ObjectMeta> list(String prefix, ListOptions options) {
    return ListedObjects.stream(this, handle, prefix, options);
  }

  /** What lies directly below {@code prefix}, which usually ends in a slash: objects, and the prefixes of what lies further down. */
  public Listing listWithDelimiter(String prefix) throws IOException {
    return listWithDelimiter(prefix, ListOptions.NONE);
  }

  /** What lies directly below {@code prefix}, of some keys. */
  public Listing listWithDelimiter(String prefix, ListOptions options) throws IOException {
    return listDirCall(prefix, options).await();
  }

  /** As {@link #listWithDelimiter(String, ListOptions)}. */
  public CompletableFuture<Listing> listWithDelimiterAsync(String prefix, ListOptions options) {
    return listDirCall(prefix, options).asFuture();
  }

  /** Removes an object. GCS says where there was none; S3 doesn't, there it is a success. */
  public void delete(String key) throws IOException {
    deleteCall(key, null).await();
  }

  /** Removes an object in this state: one that was replaced stays, and that is a failure of kind {@link ErrorKind#PRECONDITION}. */
  public void delete(String key, String version) throws IOException {
    deleteCall(key, version).await();
  }

  /** As {@link #delete(String)}. */
  public CompletableFuture<Void> deleteAsync(String key) {
    return deleteCall(key, null).asFuture();
  }

  /**
   * Removes objects in full batches, several of them at once. All are tried.
   *
   * @return what failed, by key, in the order of the keys; empty where all were removed
   */
  public Map<String, LanewayException> deleteAll(Iterable<String> keys) throws IOException {
    Map<String, LanewayException> failures = new LinkedHashMap<>();
    Iterator<String> left = keys.iterator();
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

  /** As {@link #deleteAll}, of keys that are all there. */
  public CompletableFuture<Map<String, LanewayException>> deleteAllAsync(List<String> keys) {
    return deleteSome(keys).asFuture();
  }

  /** Copies an object: the store does it by itself, and no bytes pass through this machine unless it can't. */
  public Written copy(String from, String to) throws IOException {
    return copy(from, to, CopyOptions.NONE);
  }

  /** Copies an object, as the options say. */
  public Written copy(String from, String to, CopyOptions options) throws IOException {
    return copyCall(Native.COPY, from, to, options).await();
  }

  /** As {@link #copy(String, String, CopyOptions)}. Many may be begun at once: the engine bounds what is under way. */
  public CompletableFuture<Written> copyAsync(String from, String to, CopyOptions options) {
    return copyCall(Native.COPY, from, to, options).asFuture();
  }

  /** Renames an object: copies it, and then removes the source in the state that was copied. Two requests, between which others may look. */
  public Written rename(String from, String to, CopyOptions options) throws IOException {
    return copyCall(Native.RENAME, from, to, options).await();
  }

  /** As {@link #rename}. */
  public CompletableFuture<Written> renameAsync(String from, String to, CopyOptions options) {
    return copyCall(Native.RENAME, from, to, options).asFuture();
  }

  /**
   * Begins an upload whose parts the caller numbers, sends and names at its end, in this process or others. It takes no condition: GCS's uploads in parts
   * keep none.
   */
  public MultipartUpload beginMultipart(String key, PutOptions options) throws IOException {
    Packed packed = new Packed().text(key);
    options.write(packed);
    String id = Engine.begin(Native.BEGIN_MULTIPART, handle, packed, Unpacked::text).await();
    return new MultipartUpload(this, handle, key, id);
  }

  /** An upload that was begun before, by the key and the {@linkplain MultipartUpload#id() id} that it has. Nothing is asked of the store. */
  public MultipartUpload multipart(String key, String id) {
    return new MultipartUpload(this, handle, key, id);
  }

  /** The uploads in parts of objects whose keys begin with {@code prefix} that were neither completed nor given up. */
  public List<MultipartUpload> multipartUploads(String prefix) throws IOException {
    Packed packed = new Packed().text(prefix);
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

  /** Holds no secret. */
  @Override
  public String toString() {
    return "Bucket[" + url + "]";
  }

  private Call<ObjectMeta> headCall(String key) {
    return Engine.begin(Native.HEAD, handle, new Packed().text(key), ObjectMeta::read);
  }

  private Call<ObjectReader> openCall(String key, OpenOptions options) {
    Packed packed = new Packed().text(key);
    options.write(packed);
    return Engine.begin(Native.OPEN, handle, packed, answer -> ObjectReader.read(url + key, answer));
  }

  private Call<Download> getCall(String key, GetOptions options) {
    Packed packed = new Packed().text(key);
    options.write(packed);
    return Engine.begin(Native.GET, handle, packed, answer -> Download.read(url + key, answer));
  }

  private Call<Written> putCall(String key, ByteBuffer bytes, PutOptions options) {
    Packed packed = new Packed().text(key);
    options.write(packed);
    return Engine.lend(Native.PUT, handle, packed, bytes, Written::read);
  }

  private Call<Listing> listDirCall(String prefix, ListOptions options) {
    Packed packed = new Packed().text(prefix);
    options.write(packed);
    return Engine.begin(Native.LIST_DIR, handle, packed, Listing::read);
  }

  private Call<Void> deleteCall(String key, String version) {
    return Engine.begin(
        Native.DELETE, handle, new Packed().text(key).maybeText(version), answer -> null);
  }

  private Call<Map<String, LanewayException>> deleteSome(List<String> keys) {
    Packed packed = new Packed().number(keys.size());
    keys.forEach(packed::text);
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
    Bucket into = options.into() == null ? this : options.into();
    Packed packed = new Packed().text(from).text(to).number(into.handle.number());
    options.put().write(packed);
    return Engine.begin(verb, handle, packed, Written::read, into);
  }
}
