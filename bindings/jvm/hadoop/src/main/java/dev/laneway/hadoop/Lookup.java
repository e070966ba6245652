package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.ListOptions;
import dev.laneway.Listing;
import dev.laneway.ObjectMeta;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.hadoop.fs.Path;

/**
 * Looks up paths. A file is an object with that key. A directory exists if its marker exists, or if any object's key
 * begins with the directory's key and a slash.
 */
final class Lookup {
  /** The number of entries to list: if there are two, at least one isn't the directory's own marker. */
  private static final int ENTRIES = 2;

  private final Bucket bucket;
  private final Keys keys;
  private final Tally tally;
  private final long blockBytes;
  private final String owner;

  Lookup(Bucket bucket, Keys keys, Tally tally, long blockBytes, String owner) {
    this.bucket = bucket;
    this.keys = keys;
    this.tally = tally;
    this.blockBytes = blockBytes;
    this.owner = owner;
  }

  /**
   * A directory.
   *
   * @param isEmpty true if it contains only its marker
   * @param modified the time of its marker, if it has one
   */
  record Folder(boolean isEmpty, Optional<Instant> modified) {}

  /** Returns the object of a key; empty if it doesn't exist. Takes one request. */
  CompletableFuture<Optional<ObjectMeta>> file(String key) {
    if (key.isEmpty()) {
      return CompletableFuture.completedFuture(Optional.empty());
    }
    tally.head();
    return bucket.headAsync(key).handle((meta, failure) -> {
      if (failure == null) {
        return Optional.of(meta);
      }
      return Lookup.<ObjectMeta>absent(failure);
    });
  }

  /** Returns the directory of a key; empty if it doesn't exist. The root always exists. Takes one request. */
  CompletableFuture<Optional<Folder>> folder(String key) {
    return few(key, ENTRIES).thenApply(listing -> folder(key, listing));
  }

  /**
   * Returns whether a directory still exists after one of its entries is removed, because it has a marker or another
   * entry. Takes one request.
   */
  CompletableFuture<Boolean> outlives(String directory, String going) {
    // The removed entry may be in the listing twice: as an object and as a directory. So if there are three entries, at
    // least one is another entry.
    return few(directory, ENTRIES + 1).thenApply(listing -> {
      boolean byObject = listing.objects().stream().anyMatch(object -> !object.key().equals(going));
      return byObject || listing.prefixes().stream().anyMatch(prefix -> !prefix.equals(Keys.inside(going)));
    });
  }

  /**
   * Returns the status of the file or directory at a path. A file takes one request, and a directory two.
   *
   * @throws FileNotFoundException if neither a file nor a directory has this path
   * @throws UnknownStoreException if the bucket doesn't exist
   */
  ObjectStatus status(Path path) throws IOException {
    String key = keys.of(path);
    Optional<PendingFile> uncommitted = Uncommitted.of(key).flatMap(file -> Attempts.file(bucket.url(), file));
    if (uncommitted.isPresent()) {
      // Spark asks for the size of files that a task has written.
      return ObjectStatus.file(path, uncommitted.get().bytes(), blockBytes, Instant.now().toEpochMilli(), owner, null);
    }
    Optional<ObjectMeta> file = Failures.await(path, file(key));
    if (file.isPresent()) {
      return status(path, file.get());
    }
    Folder folder = Failures.await(path, folder(key)).orElseThrow(() -> missing(path));
    return status(path, folder);
  }

  /** Returns the status of a file, from the store's metadata. */
  ObjectStatus status(Path path, ObjectMeta meta) {
    long modifiedMs = meta.updated() == null ? 0 : meta.updated().toEpochMilli();
    return ObjectStatus.file(path, meta.size(), blockBytes, modifiedMs, owner, meta.version());
  }

  /** Returns the status of a directory. */
  ObjectStatus status(Path path, Folder folder) {
    return directory(path, folder.modified());
  }

  /**
   * Returns the status of a directory, with the time of its marker if this time is known. Otherwise the status has the
   * current time, as with S3A, so that programs that remove old directories keep those of unknown age.
   */
  ObjectStatus directory(Path path, Optional<Instant> modified) {
    return ObjectStatus.directory(path, modified.orElseGet(Instant::now).toEpochMilli(), owner);
  }

  static FileNotFoundException missing(Path path) {
    return new FileNotFoundException("there is neither a file nor a directory at " + path);
  }

  /** Lists the first few entries in a directory. */
  private CompletableFuture<Listing> few(String key, int entries) {
    tally.list();
    return bucket.listWithDelimiterAsync(Keys.inside(key), ListOptions.NONE.limit(entries));
  }

  private static Optional<Folder> folder(String key, Listing listing) {
    String marker = Keys.inside(key);
    List<ObjectMeta> objects = listing.objects();
    Optional<ObjectMeta> marked = objects.stream().filter(object -> object.key().equals(marker)).findFirst();
    boolean isEmpty = listing.prefixes().isEmpty() && objects.size() == (marked.isPresent() ? 1 : 0);
    if (isEmpty && marked.isEmpty() && !key.isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(new Folder(isEmpty, marked.map(ObjectMeta::updated)));
  }

  private static <T> Optional<T> absent(Throwable failure) {
    if (Failures.isNotFound(failure)) {
      return Optional.empty();
    }
    throw new CompletionException(Failures.unwrapped(failure));
  }
}
