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
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Renames files and directories by copies that the store makes by itself, all of them at once. Sources are removed only
 * when everything is copied, so a failed rename leaves its source unchanged. Meanwhile other clients see source and
 * copies, as with any object store.
 */
final class Renaming {
  private static final Logger LOG = LoggerFactory.getLogger(Renaming.class);

  /** Copies that begin before the first of them is waited for. The library limits how many are under way. */
  private static final int COPIES_BEGUN = 10_000;

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
   * <p>If the destination is a directory, the source goes into it under its own name. A directory replaces an empty
   * one. The directory that contained the source stays.
   *
   * @return false for the root, for a directory into itself, and if a directory that isn't empty is in its place
   *     already
   * @throws FileNotFoundException if there is nothing to rename
   * @throws FileAlreadyExistsException if a file is in its place
   * @throws ParentNotDirectoryException if a file is above its place
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
      LOG.warn("{} can't be renamed to {}, where a directory is", source, place);
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
      // This removes the source only in the version that was copied. If two clients rename to one place, only one
      // succeeds.
      try {
        Failures.await(source, bucket.renameAsync(from, to, CopyOptions.NONE.ifAbsent()));
      } catch (IOException failed) {
        // The store doesn't say which condition failed: the source's version, or that the place is empty.
        if (Failures.isConflict(failed) && Failures.await(source, lookup.file(to)).isPresent()) {
          throw (IOException) new FileAlreadyExistsException(bucket.url() + to + " is a file by now").initCause(failed);
        }
        throw failed;
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
    List<String> begun = new ArrayList<>();
    Deque<CompletableFuture<Written>> under = new ArrayDeque<>();
    boolean isDone = false;
    tally.list();
    try (Stream<ObjectMeta> inside = bucket.list(Keys.inside(from))) {
      for (Iterator<ObjectMeta> objects = inside.iterator(); objects.hasNext(); ) {
        String key = objects.next().key();
        begun.add(key);
        tally.copied();
        under.add(bucket.copyAsync(key, moved(key, from, to), CopyOptions.NONE));
        if (under.size() > COPIES_BEGUN) {
          Failures.await(source, under.remove());
        }
      }
      while (!under.isEmpty()) {
        Failures.await(source, under.remove());
      }
      isDone = true;
      return begun;
    } catch (UncheckedIOException failed) {
      throw Failures.of(source, failed.getCause());
    } finally {
      if (!isDone) {
        // The marker of an empty directory that was in its place stays.
        Stream<String> copies = begun.stream().map(key -> moved(key, from, to)).filter(key -> !key.equals(Keys.inside(to)));
        giveUp(source, under, copies.iterator());
      }
    }
  }

  /** Removes the copies of a failed rename, so that nothing is in the way of another try. */
  private void giveUp(Path source, Deque<CompletableFuture<Written>> under, Iterator<String> copies) {
    under.forEach(copy -> copy.cancel(true));
    // An interrupt may have caused the failure, and must not prevent this.
    boolean isInterrupted = Thread.interrupted();
    try {
      deletion.deleteAll(source, copies);
    } catch (IOException failed) {
      LOG.warn("copies are left of {}, whose renaming failed", source, failed);
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static String moved(String key, String from, String to) {
    return Keys.inside(to) + key.substring(Keys.inside(from).length());
  }

  /** The findings at the destination, all requested at once. */
  private final class Found {
    private final String key;
    private final CompletableFuture<Optional<ObjectMeta>> file;
    private final CompletableFuture<Optional<Lookup.Folder>> folder;

    Found(String key) {
      this.key = key;
      this.file = lookup.file(key);
      this.folder = lookup.folder(key);
    }

    /** Checks that no file is in the way. Everything above the source is known to be a directory. */
    void check(Path place, String from) throws IOException {
      if (Failures.await(place, file).isPresent()) {
        throw new FileAlreadyExistsException(place + " is a file already");
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
