package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.CopyOptions;
import dev.laneway.ObjectMeta;
import dev.laneway.Written;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Renames files and directories: the store copies all objects, many at once, and then the sources are removed. The
 * sources are removed only when everything is copied, so a failed rename leaves its source unchanged. During a rename,
 * other clients see both the sources and the copies, as with any object store.
 */
final class Renaming {
  private static final Logger LOG = LoggerFactory.getLogger(Renaming.class);

  /**
   * The maximum number of copies that have begun and were not awaited yet. The library limits how many of them run at
   * once.
   */
  private static final int COPIES_BEGUN = 10_000;

  /** The maximum time for which a failed rename waits for its other copies, so that it can remove them. */
  private static final int SETTLE_SECONDS_MAX = 30;

  private final Bucket bucket;
  private final Keys keys;
  private final Lookup lookup;
  private final Directories directories;
  private final Deletion deletion;
  private final Tally tally;

  Renaming(Bucket bucket, Keys keys, Lookup lookup, Directories directories, Deletion deletion, Tally tally) {
    this.bucket = bucket;
    this.keys = keys;
    this.lookup = lookup;
    this.directories = directories;
    this.deletion = deletion;
    this.tally = tally;
  }

  /**
   * Renames a file or a directory.
   *
   * <p>If the destination is a directory, the source moves into it under its own name. But if the source is a directory
   * too, it replaces an empty destination. The directory that contained the source stays, even if it is now empty.
   *
   * <p>Returns false for the root, for a directory that would move into itself, and if a directory that isn't empty
   * already has the new name.
   *
   * @throws FileNotFoundException If the source doesn't exist.
   * @throws FileAlreadyExistsException If a file already has the new name.
   * @throws ParentNotDirectoryException If a directory above the new name is a file.
   */
  boolean rename(Path source, Path place) throws IOException {
    String from = keys.of(source);
    String to = keys.of(place);
    if (from.isEmpty()) {
      LOG.warn("{} is the root of a bucket, which can't be renamed", source);
      return false;
    }
    Found there = new Found(to);
    CompletableFuture<Optional<ObjectMeta>> asFile = lookup.file(from);
    CompletableFuture<Optional<Lookup.Folder>> asFolder = lookup.folder(from);
    boolean isFile = Failures.await(source, asFile).isPresent();
    if (!isFile && Failures.await(source, asFolder).isEmpty()) {
      throw Lookup.missing(source);
    }
    if (from.equals(to)) {
      return isFile;
    }
    if (!isFile && Keys.isInside(to, from)) {
      LOG.warn("{} can't be renamed to {}, which is inside of it", source, place);
      return false;
    }
    there.check(place, from);
    Optional<Lookup.Folder> into = there.folder(place);
    if (into.isPresent() && (isFile || !into.get().isEmpty() || to.isEmpty())) {
      return moveInto(source, isFile, place, to);
    }
    move(source, from, isFile, to);
    return true;
  }

  /** Moves the source into a directory, under its own name. */
  private boolean moveInto(Path source, boolean isFile, Path directory, String to) throws IOException {
    Path place = new Path(directory, source.getName());
    String from = keys.of(source);
    String inside = Keys.inside(to) + source.getName();
    if (inside.equals(from)) {
      return isFile;
    }
    Found there = new Found(inside);
    there.check(place, from);
    Optional<Lookup.Folder> taken = there.folder(place);
    if (taken.isPresent() && (isFile || !taken.get().isEmpty())) {
      LOG.warn("{} can't be renamed to {}, because a directory has that name", source, place);
      return false;
    }
    move(source, from, isFile, inside);
    return true;
  }

  private void move(Path source, String from, boolean isFile, String to) throws IOException {
    CompletableFuture<Boolean> stays = directories.staysWithout(from, to);
    if (isFile) {
      directories.keepWithout(source, from, stays);
      tally.copied();
      tally.deleting(1);
      // The store removes the source only if it still has the version that was copied. If two clients rename to the
      // same name, only one succeeds.
      try {
        Failures.await(source, bucket.renameAsync(from, to, CopyOptions.NONE.ifAbsent()));
      } catch (FileAlreadyExistsException failed) {
        throw (IOException)
            new FileAlreadyExistsException(bucket.url() + to + " was created by another writer").initCause(failed);
      }
      return;
    }
    List<String> moved = copyInside(source, from, to);
    directories.keepWithout(source, from, stays);
    deletion.deleteAll(source, moved.iterator());
  }

  /**
   * Copies everything in a directory.
   *
   * @return the keys that were copied
   */
  private List<String> copyInside(Path source, String from, String to) throws IOException {
    List<String> copied = new ArrayList<>();
    Deque<Copy> under = new ArrayDeque<>();
    boolean isDone = false;
    tally.list();
    try (Stream<ObjectMeta> inside = bucket.list(Keys.inside(from))) {
      for (Iterator<ObjectMeta> objects = inside.iterator(); objects.hasNext(); ) {
        String key = objects.next().key();
        tally.copied();
        // An empty directory may have a marker already.
        CopyOptions options = key.equals(Keys.inside(from)) ? CopyOptions.NONE : CopyOptions.NONE.ifAbsent();
        under.add(new Copy(key, bucket.copyAsync(key, moved(key, from, to), options)));
        if (under.size() > COPIES_BEGUN) {
          copied.add(finish(source, under));
        }
      }
      while (!under.isEmpty()) {
        copied.add(finish(source, under));
      }
      isDone = true;
      return copied;
    } catch (UncheckedIOException failed) {
      throw Failures.of(source, failed.getCause());
    } finally {
      if (!isDone) {
        giveUp(source, copied, under, from, to);
      }
    }
  }

  /** Waits for the oldest copy, and removes it from those that are under way. Returns the key that was copied. */
  private static String finish(Path source, Deque<Copy> under) throws IOException {
    // If this thread is interrupted, the copy itself goes on, so that its outcome will be known.
    Failures.await(source, under.element().written().copy());
    return under.remove().key();
  }

  /**
   * Removes the copies of a failed rename, so that they don't block another attempt. Waits for copies that are under way,
   * because a cancelled copy could appear later. Copies that failed stay: the object may be another writer's.
   */
  private void giveUp(Path source, List<String> copied, Deque<Copy> under, String from, String to) {
    // An interrupt may have caused the failure. Clear the flag, because the interrupt would also end the removal.
    boolean isInterrupted = Thread.interrupted();
    try {
      CompletableFuture.allOf(under.stream().map(Copy::written).toArray(CompletableFuture[]::new))
          .exceptionally(failed -> null)
          .get(SETTLE_SECONDS_MAX, TimeUnit.SECONDS);
    } catch (InterruptedException stop) {
      isInterrupted = true;
    } catch (ExecutionException | TimeoutException late) {
      LOG.warn("renaming {} failed, and some of its copies may be left", source);
    }
    try {
      under.forEach(copy -> copy.written().cancel(true));
      under.stream().filter(copy -> !copy.written().isCompletedExceptionally()).map(Copy::key).forEach(copied::add);
      // If the destination was an empty directory before, its marker stays.
      Stream<String> copies = copied.stream().map(key -> moved(key, from, to)).filter(key -> !key.equals(Keys.inside(to)));
      deletion.deleteAll(source, copies.iterator());
    } catch (IOException failed) {
      LOG.warn("renaming {} failed, and some of its copies could not be removed", source, failed);
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static String moved(String key, String from, String to) {
    return Keys.inside(to) + key.substring(Keys.inside(from).length());
  }

  /** A copy that has begun, and the key that is copied. */
  private record Copy(String key, CompletableFuture<Written> written) {}

  /** The file and the directory with a destination's name. Both are requested at once. */
  private final class Found {
    private final String key;
    private final CompletableFuture<Optional<ObjectMeta>> file;
    private final CompletableFuture<Optional<Lookup.Folder>> folder;

    Found(String key) {
      this.key = key;
      this.file = lookup.file(key);
      this.folder = lookup.folder(key);
    }

    /**
     * Checks that neither the destination nor a directory above it is a file. The directories above the source are
     * known to be directories.
     */
    void check(Path place, String from) throws IOException {
      if (Failures.await(place, file).isPresent()) {
        throw new FileAlreadyExistsException(place + " already exists as a file");
      }
      if (Failures.await(place, folder).isEmpty()) {
        List<String> above = new ArrayList<>(Keys.above(key));
        above.removeAll(Keys.above(from));
        directories.checkAbove(place, above);
      }
    }

    Optional<Lookup.Folder> folder(Path place) throws IOException {
      return Failures.await(place, folder);
    }
  }
}
