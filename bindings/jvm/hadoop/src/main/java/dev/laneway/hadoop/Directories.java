package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.ObjectMeta;
import dev.laneway.PutOptions;
import dev.laneway.Written;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes directories, and keeps a directory when its last entry is removed. It uses markers, as S3A and the GCS
 * connector do. A marker is an empty object whose key ends with a slash. It stays when files are added.
 */
final class Directories {
  private static final Logger LOG = LoggerFactory.getLogger(Directories.class);

  private final Bucket bucket;
  private final Keys keys;
  private final Lookup lookup;
  private final Tally tally;
  private final PutOptions described;

  Directories(Connection connection, Keys keys, Lookup lookup, Tally tally) {
    this.bucket = connection.bucket();
    this.keys = keys;
    this.lookup = lookup;
    this.tally = tally;
    this.described = connection.described().contentType("application/x-directory");
  }

  /**
   * Makes a directory. The directories above it need no markers: they exist as prefixes of its key. An existing
   * directory doesn't change. If the directory exists, this takes one request, and otherwise two more round trips.
   *
   * @throws FileAlreadyExistsException if a file has its name
   * @throws ParentNotDirectoryException if a directory above it is a file
   */
  void make(Path path) throws IOException {
    String key = keys.of(path);
    if (key.isEmpty() || Failures.await(path, lookup.folder(key)).isPresent()) {
      return;
    }
    List<String> above = Keys.above(key);
    CompletableFuture<Optional<ObjectMeta>> inPlace = lookup.file(key);
    List<CompletableFuture<Optional<ObjectMeta>>> inTheWay = files(above);
    if (Failures.await(path, inPlace).isPresent()) {
      throw new FileAlreadyExistsException(path + " is a file");
    }
    checkAbove(path, above, inTheWay);
    Failures.await(path, mark(key));
  }

  /**
   * Checks in one round trip that none of these directories is a file.
   *
   * @throws ParentNotDirectoryException if one is
   */
  void checkAbove(Path path, List<String> above) throws IOException {
    checkAbove(path, above, files(above));
  }

  /** Writes the marker of a directory. Takes one request. */
  CompletableFuture<Written> mark(String key) {
    tally.put();
    return bucket.putAsync(Keys.inside(key), ByteBuffer.allocate(0), described);
  }

  /**
   * Returns whether the directory of an entry still exists after the entry is removed, because it has a marker or
   * another entry. Takes one request.
   */
  CompletableFuture<Boolean> staysWithout(String going) {
    String directory = above(going);
    return directory.isEmpty() ? CompletableFuture.completedFuture(true) : lookup.outlives(directory, going);
  }

  /** Does the same for an entry that is renamed. Its new name may be in the same directory. */
  CompletableFuture<Boolean> staysWithout(String going, String to) {
    return Keys.isInside(to, above(going)) ? CompletableFuture.completedFuture(true) : staysWithout(going);
  }

  /**
   * Keeps the directory of an entry that is about to be removed, as a file system would. The directory gets a marker if
   * it wouldn't exist otherwise.
   *
   * @param stays the result of {@link #staysWithout}
   */
  void keepWithout(Path path, String going, CompletableFuture<Boolean> stays) throws IOException {
    if (!Failures.await(path, stays)) {
      Failures.await(path, mark(above(going)));
    }
  }

  /** Returns the key of the directory that contains a key; empty for the root. */
  private static String above(String key) {
    return key.substring(0, Math.max(0, key.lastIndexOf('/')));
  }

  private List<CompletableFuture<Optional<ObjectMeta>>> files(List<String> above) {
    List<CompletableFuture<Optional<ObjectMeta>>> files = new ArrayList<>();
    above.forEach(directory -> files.add(lookup.file(directory)));
    return files;
  }

  private void checkAbove(Path path, List<String> above, List<CompletableFuture<Optional<ObjectMeta>>> files)
      throws IOException {
    for (int i = 0; i < files.size(); i++) {
      try {
        if (Failures.await(path, files.get(i)).isPresent()) {
          throw new ParentNotDirectoryException(path + " can't be below " + above.get(i) + ", which is a file");
        }
      } catch (AccessDeniedException denied) {
        // The credentials may permit writing below a prefix but not reading above it. In that case, skip this check.
        LOG.debug("no permission to check whether {} is a file", above.get(i), denied);
      }
    }
  }
}
