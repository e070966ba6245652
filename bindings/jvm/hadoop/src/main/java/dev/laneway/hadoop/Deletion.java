package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.LanewayException;
import dev.laneway.ObjectMeta;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Deletes files and directories. */
final class Deletion {
  private static final Logger LOG = LoggerFactory.getLogger(Deletion.class);

  /**
   * The number of keys in a batch. S3 removes a batch with one request, and GCS with ten requests that are sent
   * together.
   */
  static final int KEYS_OF_A_BATCH = 1000;

  /**
   * The maximum number of batches that are passed to the library at once. The library sends fewer of these batches at a
   * time.
   */
  private static final int BATCHES_AT_ONCE = 16;

  private final Bucket bucket;
  private final Keys keys;
  private final Lookup lookup;
  private final Directories directories;
  private final Tally tally;

  Deletion(Bucket bucket, Keys keys, Lookup lookup, Directories directories, Tally tally) {
    this.bucket = bucket;
    this.keys = keys;
    this.lookup = lookup;
    this.directories = directories;
    this.tally = tally;
  }

  /**
   * Deletes a file, or a directory with everything in it. The directory that contained it stays. The root is never
   * deleted, not even recursively.
   *
   * @return true if something existed and was deleted
   * @throws PathIsNotEmptyDirectoryException for a directory that isn't empty, without {@code isRecursive}
   */
  boolean delete(Path path, boolean isRecursive) throws IOException {
    String key = keys.of(path);
    if (key.isEmpty()) {
      return deleteRoot(path, isRecursive);
    }
    CompletableFuture<Optional<ObjectMeta>> file = lookup.file(key);
    CompletableFuture<Boolean> stays = directories.staysWithout(key);
    if (Failures.await(path, file).isPresent()) {
      directories.keepWithout(path, key, stays);
      deleteOne(path, key);
      return true;
    }
    Optional<Lookup.Folder> folder = Failures.await(path, lookup.folder(key));
    if (folder.isEmpty()) {
      return false;
    }
    if (!isRecursive && !folder.get().isEmpty()) {
      throw new PathIsNotEmptyDirectoryException(path.toString());
    }
    directories.keepWithout(path, key, stays);
    if (folder.get().isEmpty()) {
      deleteOne(path, Keys.inside(key));
    } else {
      deleteInside(path, key);
    }
    return true;
  }

  /**
   * Deletes keys in full batches, many of them at once. Missing keys count as deleted.
   *
   * @throws IOException if keys could not be deleted: the first failure, with the number of failures; all other keys
   *     are deleted
   */
  void deleteAll(Path path, Iterator<String> going) throws IOException {
    Deque<CompletableFuture<Map<String, LanewayException>>> under = new ArrayDeque<>();
    Failed failed = new Failed();
    List<String> batch = new ArrayList<>(KEYS_OF_A_BATCH);
    try {
      while (going.hasNext()) {
        batch.add(going.next());
        if (batch.size() == KEYS_OF_A_BATCH || !going.hasNext()) {
          tally.deleting(batch.size());
          under.add(bucket.deleteAllAsync(batch));
          batch = new ArrayList<>(KEYS_OF_A_BATCH);
        }
        if (under.size() > BATCHES_AT_ONCE) {
          failed.add(Failures.await(path, under.remove()));
        }
      }
      while (!under.isEmpty()) {
        failed.add(Failures.await(path, under.remove()));
      }
    } finally {
      under.forEach(one -> one.cancel(true));
    }
    failed.raise(path);
  }

  private void deleteInside(Path path, String key) throws IOException {
    tally.list();
    try (Stream<ObjectMeta> inside = bucket.list(Keys.inside(key))) {
      deleteAll(path, inside.map(ObjectMeta::key).iterator());
    } catch (UncheckedIOException failed) {
      throw Failures.of(path, failed.getCause());
    }
  }

  private boolean deleteRoot(Path path, boolean isRecursive) throws IOException {
    boolean isEmpty = Failures.await(path, lookup.folder("")).map(Lookup.Folder::isEmpty).orElse(true);
    if (isEmpty) {
      return true;
    }
    if (!isRecursive) {
      throw new PathIsNotEmptyDirectoryException(path.toString());
    }
    LOG.warn("{} is the root of a bucket, which is never deleted: name the paths to delete", path);
    return false;
  }

  private void deleteOne(Path path, String key) throws IOException {
    tally.deleting(1);
    Failures.await(path, bucket.deleteAsync(key).exceptionally(failure -> {
      if (Failures.isNotFound(failure)) {
        // The object was gone already.
        return null;
      }
      throw new CompletionException(Failures.unwrapped(failure));
    }));
  }

  /** The keys that could not be deleted. */
  private static final class Failed {
    private int number;
    private Map.Entry<String, LanewayException> first;

    void add(Map<String, LanewayException> failures) {
      for (Map.Entry<String, LanewayException> failure : failures.entrySet()) {
        if (!Failures.isNotFound(failure.getValue())) {
          number++;
          first = first == null ? Map.entry(failure.getKey(), failure.getValue()) : first;
        }
      }
    }

    void raise(Path path) throws IOException {
      if (first != null) {
        IOException cause = Failures.of(path, first.getValue());
        if (number == 1) {
          throw cause;
        }
        throw new PathIOException(
            path.toString(), number + " objects were not deleted, the first of them " + first.getKey(), cause);
      }
    }
  }
}
