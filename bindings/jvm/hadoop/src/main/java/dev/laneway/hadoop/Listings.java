package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.Listing;
import dev.laneway.ListOptions;
import dev.laneway.ObjectMeta;
import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Lists directories. Leaves out keys that no path can name, because they contain an empty name, {@code .} or {@code
 * ..}. But if their directory is renamed or recursively deleted, these keys are included.
 */
final class Listings {
  private final Bucket bucket;
  private final Keys keys;
  private final Lookup lookup;
  private final Tally tally;

  Listings(Bucket bucket, Keys keys, Lookup lookup, Tally tally) {
    this.bucket = bucket;
    this.keys = keys;
    this.lookup = lookup;
    this.tally = tally;
  }

  /**
   * Returns the entries directly in a directory, in the order of their names. For a file, returns only that file. A
   * directory takes one request for each page, and a file takes one more request.
   *
   * @throws FileNotFoundException if neither a file nor a directory has this path
   */
  List<ObjectStatus> in(Path path) throws IOException {
    String key = keys.of(path);
    String inside = Keys.inside(key);
    tally.list();
    Listing listing = Failures.await(path, bucket.listWithDelimiterAsync(inside, ListOptions.NONE));
    List<ObjectStatus> found = new ArrayList<>();
    for (String prefix : listing.prefixes()) {
      keys.path(prefix).ifPresent(at -> found.add(lookup.directory(at, Optional.empty())));
    }
    for (ObjectMeta object : listing.objects()) {
      if (!Keys.isMarker(object.key())) {
        keys.path(object.key()).ifPresent(at -> found.add(lookup.status(at, object)));
      }
    }
    boolean isThere = key.isEmpty() || !listing.prefixes().isEmpty() || !listing.objects().isEmpty();
    if (!isThere) {
      ObjectMeta file = Failures.await(path, lookup.file(key)).orElseThrow(() -> Lookup.missing(path));
      return List.of(lookup.status(path, file));
    }
    found.sort(null);
    return found;
  }

  /**
   * Returns all files below a directory, as pages of the flat listing arrive. For a file, returns only that file. The
   * caller must close the iterator if it doesn't read it to its end.
   *
   * @param as converts each file
   * @throws FileNotFoundException if neither a file nor a directory has this path
   */
  <T> RemoteIterator<T> below(Path path, Function<ObjectStatus, T> as) throws IOException {
    String key = keys.of(path);
    tally.list();
    Stream<ObjectMeta> objects = bucket.list(Keys.inside(key));
    Files<T> files = new Files<>(path, objects, as);
    if (key.isEmpty() || files.isAny()) {
      return files;
    }
    files.close();
    ObjectMeta file = Failures.await(path, lookup.file(key)).orElseThrow(() -> Lookup.missing(path));
    T only = as.apply(lookup.status(path, file));
    return new RemoteIterator<>() {
      private boolean isTaken;

      @Override
      public boolean hasNext() {
        return !isTaken;
      }

      @Override
      public T next() {
        if (isTaken) {
          throw new NoSuchElementException();
        }
        isTaken = true;
        return only;
      }
    };
  }

  /**
   * Counts the files and directories below a path, including itself, and their bytes, by one flat listing.
   *
   * @throws FileNotFoundException if neither a file nor a directory has this path
   */
  ContentSummary summary(Path path) throws IOException {
    String key = keys.of(path);
    String inside = Keys.inside(key);
    Set<String> directories = new HashSet<>();
    long files = 0;
    long bytes = 0;
    tally.list();
    try (Stream<ObjectMeta> objects = bucket.list(inside)) {
      for (Iterator<ObjectMeta> all = objects.iterator(); all.hasNext(); ) {
        ObjectMeta object = all.next();
        directories.add(key);
        for (int at = object.key().lastIndexOf('/'); at > inside.length(); at = object.key().lastIndexOf('/', at - 1)) {
          // If this directory was already counted, the directories above it were counted too.
          if (!directories.add(object.key().substring(0, at))) {
            break;
          }
        }
        if (!Keys.isMarker(object.key())) {
          files++;
          bytes += object.size();
        }
      }
    } catch (UncheckedIOException failed) {
      throw Failures.of(path, failed.getCause());
    }
    if (key.isEmpty()) {
      directories.add(key);
    } else if (directories.isEmpty()) {
      ObjectMeta file = Failures.await(path, lookup.file(key)).orElseThrow(() -> Lookup.missing(path));
      files = 1;
      bytes = file.size();
    }
    return new ContentSummary.Builder()
        .length(bytes)
        .fileCount(files)
        .directoryCount(directories.size())
        .spaceConsumed(bytes)
        .build();
  }

  /** The files of a flat listing. Fetches one file ahead, to know whether another file follows. */
  private final class Files<T> implements RemoteIterator<T>, Closeable {
    private final Path path;
    private final Stream<ObjectMeta> stream;
    private final Iterator<ObjectMeta> objects;
    private final Function<ObjectStatus, T> as;
    private boolean isAny;
    private T next;

    Files(Path path, Stream<ObjectMeta> stream, Function<ObjectStatus, T> as) throws IOException {
      this.path = path;
      this.stream = stream;
      this.objects = stream.iterator();
      this.as = as;
      advance();
    }

    /** Returns whether there was any object, even a marker. */
    boolean isAny() {
      return isAny;
    }

    @Override
    public boolean hasNext() {
      return next != null;
    }

    @Override
    public T next() throws IOException {
      if (next == null) {
        throw new NoSuchElementException();
      }
      T now = next;
      advance();
      return now;
    }

    @Override
    public void close() {
      next = null;
      stream.close();
    }

    private void advance() throws IOException {
      next = null;
      try {
        while (next == null && objects.hasNext()) {
          ObjectMeta object = objects.next();
          isAny = true;
          if (!Keys.isMarker(object.key())) {
            next = keys.path(object.key()).map(at -> as.apply(lookup.status(at, object))).orElse(null);
          }
        }
      } catch (UncheckedIOException failed) {
        throw Failures.of(path, failed.getCause());
      }
      if (next == null) {
        stream.close();
      }
    }
  }
}
