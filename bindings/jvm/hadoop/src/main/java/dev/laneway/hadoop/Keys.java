package dev.laneway.hadoop;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.Path;

/**
 * Converts paths of one filesystem to keys of its bucket, and back.
 *
 * <p>A path's key is the path without its leading slash: {@code gs://bucket/a/b} is {@code a/b}, and the root is the
 * empty key. The marker of a directory is an empty object whose key ends with a slash, {@code a/b/}.
 */
final class Keys {
  /** The separator of keys. */
  static final String SLASH = "/";

  private final URI root;

  /** @param root scheme and bucket, as {@code s3a://bucket} */
  Keys(URI root) {
    this.root = root;
  }

  /**
   * Returns the key of an absolute path.
   *
   * @return the key without a slash at either end; empty for the root
   */
  String of(Path path) {
    String key = path.toUri().getPath();
    int start = key.startsWith(SLASH) ? 1 : 0;
    int end = key.length() > start && key.endsWith(SLASH) ? key.length() - 1 : key.length();
    return key.substring(start, Math.max(start, end));
  }

  /** Returns the prefix of all keys in a directory, which is also its marker's key; empty for the root. */
  static String inside(String key) {
    return key.isEmpty() ? "" : key + SLASH;
  }

  /** Returns whether the object of a key is a directory's marker. */
  static boolean isMarker(String key) {
    return key.endsWith(SLASH);
  }

  /**
   * Returns the path of a key, or of a marker.
   *
   * @return empty if no path has this key, because Hadoop's paths can't contain empty names, {@code .} or {@code ..}
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

  /** Returns the root of the filesystem. */
  Path rootPath() {
    return new Path(root.getScheme(), root.getAuthority(), SLASH);
  }

  /** Returns the keys of the directories above a key, the nearest first, without the root. */
  static List<String> above(String key) {
    List<String> above = new ArrayList<>();
    for (int at = key.lastIndexOf('/'); at > 0; at = key.lastIndexOf('/', at - 1)) {
      above.add(key.substring(0, at));
    }
    return above;
  }

  /** Returns whether a key lies in a directory, at any depth. */
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
