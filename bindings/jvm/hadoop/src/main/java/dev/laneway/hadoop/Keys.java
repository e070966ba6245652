package dev.laneway.hadoop;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.Path;

/**
 * Paths of one filesystem as keys of its bucket, and back.
 *
 * <p>A path's key is its path without the slash that it begins with: {@code gs://bucket/a/b} is {@code a/b}, and the root the empty
 * key. The marker of a directory is an empty object whose key ends with a slash, {@code a/b/}.
 */
final class Keys {
  /** What keys are cut into. */
  static final String SLASH = "/";

  private final URI root;

  /** @param root scheme and bucket, as {@code s3a://bucket} */
  Keys(URI root) {
    this.root = root;
  }

  /**
   * The key of an absolute path.
   *
   * @return without a slash at either end; empty for the root
   */
  String of(Path path) {
    String key = path.toUri().getPath();
    int start = key.startsWith(SLASH) ? 1 : 0;
    int end = key.length() > start && key.endsWith(SLASH) ? key.length() - 1 : key.length();
    return key.substring(start, Math.max(start, end));
  }

  /** What the keys in a directory begin with, which is its marker's key too; empty for the root's. */
  static String inside(String key) {
    return key.isEmpty() ? "" : key + SLASH;
  }

  /** Whether an object stands for a directory, instead of a file. */
  static boolean isMarker(String key) {
    return key.endsWith(SLASH);
  }

  /**
   * The path of a key, or of a marker.
   *
   * @return empty where no path leads back to the key: Hadoop's paths know no empty names, no {@code .} and no {@code ..}
   */
  Optional<Path> path(String key) {
    String named = isMarker(key) ? key.substring(0, key.length() - 1) : key;
    if (named.isEmpty()) {
      return key.isEmpty() ? Optional.of(rootPath()) : Optional.empty();
    }
    if (!leadsBack(named)) {
      return Optional.empty();
    }
    return Optional.of(new Path(root.getScheme(), root.getAuthority(), SLASH + named));
  }

  /** The root of the filesystem. */
  Path rootPath() {
    return new Path(root.getScheme(), root.getAuthority(), SLASH);
  }

  /** The keys of the directories that a key lies in, the nearest first, the root left out. */
  static List<String> above(String key) {
    List<String> above = new ArrayList<>();
    for (int at = key.lastIndexOf('/'); at > 0; at = key.lastIndexOf('/', at - 1)) {
      above.add(key.substring(0, at));
    }
    return above;
  }

  /** Whether a key lies in a directory, at any depth. */
  static boolean isInside(String key, String directory) {
    return !key.equals(directory) && key.startsWith(inside(directory));
  }

  private static boolean leadsBack(String key) {
    for (int from = 0; from <= key.length(); ) {
      int slash = key.indexOf('/', from);
      int end = slash < 0 ? key.length() : slash;
      int length = end - from;
      if (length == 0 || (length <= 2 && key.regionMatches(from, "..", 0, length))) {
        return false;
      }
      from = end + 1;
    }
    return true;
  }
}
