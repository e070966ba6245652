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
 * What is at a path: a file is an object of that key; a directory is there where its marker is, or any object whose key begins with it and
 * a slash.
 */
final class Lookup {
  /** Enough to tell an empty directory's marker from what lies beside it. */
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
   * @param isEmpty whether nothing but its marker is there
   * @param modified when its marker was made, where it has one
   */
  record Folder(boolean isEmpty, Optional<Instant> modified) {}

  /** The object of a key; empty where there is none. One request. */
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

  /** The directory of a key; empty where there is none. The root is always there. One request. */
  CompletableFuture<Optional<Folder>> folder(String key) {
    return few(key, ENTRIES).thenApply(listing -> folder(key, listing));
  }

  /** Whether a directory stays one when something in it goes: whether it has a marker, or holds something else. One request. */
  CompletableFuture<Boolean> outlives(String directory, String going) {
    // What goes may be there as an object and as a directory; a third entry is another's.
    return few(directory, ENTRIES + 1).thenApply(listing -> {
      boolean byObject = listing.objects().stream().anyMatch(object -> !object.key().equals(going));
      return byObject || listing.prefixes().stream().anyMatch(prefix -> !prefix.equals(Keys.inside(going)));
    });
  }

  /**
   * The status of whatever is at a path. A file takes one request, a directory another.
   *
   * @throws FileNotFoundException where nothing is
   */
  ObjectStatus status(Path path) throws IOException {
    String key = keys.of(path);
    Optional<PendingFile> uncommitted = Uncommitted.of(key).flatMap(file -> Attempts.file(bucket.url(), file));
    if (uncommitted.isPresent()) {
      // Spark asks how large the files are that a task has written.
      return ObjectStatus.file(path, uncommitted.get().bytes(), blockBytes, Instant.now().toEpochMilli(), owner, null);
    }
    Optional<ObjectMeta> file = Failures.await(path, file(key));
    if (file.isPresent()) {
      return status(path, file.get());
    }
    Folder folder = Failures.await(path, folder(key)).orElseThrow(() -> missing(path));
    return status(path, folder);
  }

  /** The status of a file, as the store has told of it. */
  ObjectStatus status(Path path, ObjectMeta meta) {
    long modifiedMs = meta.updated() == null ? 0 : meta.updated().toEpochMilli();
    return ObjectStatus.file(path, meta.size(), blockBytes, modifiedMs, owner, meta.version());
  }

  /** The status of a directory. */
  ObjectStatus status(Path path, Folder folder) {
    return directory(path, folder.modified());
  }

  /**
   * The status of a directory, as old as its marker where that was seen; else as of now, as S3A has it: what removes old directories then
   * spares those of which no age is known.
   */
  ObjectStatus directory(Path path, Optional<Instant> modified) {
    return ObjectStatus.directory(path, modified.orElseGet(Instant::now).toEpochMilli(), owner);
  }

  static FileNotFoundException missing(Path path) {
    return new FileNotFoundException("there is neither a file nor a directory at " + path);
  }

  /** The first few entries in a directory. */
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
