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
 * Makes directories, and keeps them where their last file goes, by markers: empty objects whose keys end with a slash, as S3A and the GCS
 * connector make them. Markers stay when files come beside them.
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
   * Makes a directory, and with it those above: they are there as what its key begins with. Of one that is there already nothing changes.
   * One request where it is there; else two more round trips.
   *
   * @throws FileAlreadyExistsException where a file is in its place
   * @throws ParentNotDirectoryException where a file is above it
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
   * Looks that no file is among the directories of some keys. One round trip.
   *
   * @throws ParentNotDirectoryException where one is
   */
  void checkAbove(Path path, List<String> above) throws IOException {
    checkAbove(path, above, files(above));
  }

  /** Makes a marker. One request. */
  CompletableFuture<Written> mark(String key) {
    tally.put();
    return bucket.putAsync(Keys.inside(key), ByteBuffer.allocate(0), described);
  }

  /** Whether the directory that something is in stays one when that goes: by a marker, or by what else is in it. One request. */
  CompletableFuture<Boolean> staysWithout(String going) {
    String directory = above(going);
    return directory.isEmpty() ? CompletableFuture.completedFuture(true) : lookup.outlives(directory, going);
  }

  /** The same of what goes to another place, which may be in that directory again. */
  CompletableFuture<Boolean> staysWithout(String going, String to) {
    return Keys.isInside(to, above(going)) ? CompletableFuture.completedFuture(true) : staysWithout(going);
  }

  /**
   * Keeps the directory of what is about to go, as a file system would: where it wouldn't stay by itself it is given a marker.
   *
   * @param stays what {@link #staysWithout} has found
   */
  void keepWithout(Path path, String going, CompletableFuture<Boolean> stays) throws IOException {
    if (!Failures.await(path, stays)) {
      Failures.await(path, mark(above(going)));
    }
  }

  /** The key of the directory that a key is in; empty for the root's. */
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
        // Who may write below a place need not be allowed to look above it.
        LOG.debug("not looked for a file at {}", above.get(i), denied);
      }
    }
  }
}
