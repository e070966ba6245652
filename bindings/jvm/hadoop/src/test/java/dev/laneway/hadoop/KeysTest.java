package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

class KeysTest {
  private final Keys keys = new Keys(URI.create("s3a://lake"));

  @Test
  void aPathLosesTheSlashesAtItsEnds() {
    assertEquals("a/b", keys.of(new Path("s3a://lake/a/b")));
    assertEquals("a/b", keys.of(new Path("/a/b/")));
    assertEquals("", keys.of(new Path("s3a://lake/")));
    assertEquals("", keys.of(new Path("/")));
  }

  @Test
  void aKeyWithAwkwardSignsComesBackFromItsPath() {
    for (String key : List.of("a", "a/b", "a:b/c=1", "a b/%20", "ü/日本", "a?b#c", "...", ".a/..b", "x/[*]{y}")) {
      Path path = keys.path(key).orElseThrow();
      assertEquals(key, keys.of(path));
      assertEquals(Optional.of(path), keys.path(key + "/"));
    }
  }

  @Test
  void aKeyThatNoPathNamesHasNone() {
    for (String key : List.of("a//b", "/a", "//", "/", "a/./b", "a/../b", "..", ".", "a/..", "./a")) {
      assertEquals(Optional.empty(), keys.path(key), key);
    }
    assertEquals(Optional.of(new Path("s3a://lake/")), keys.path(""));
  }

  @Test
  void theDirectoriesAboveAreNamedFromTheNearestOn() {
    assertEquals(List.of("a/b", "a"), Keys.above("a/b/c"));
    assertEquals(List.of(), Keys.above("a"));
  }

  @Test
  void aNameThatBeginsAlikeIsNotInside() {
    assertTrue(Keys.isInside("a/b/c", "a/b"));
    assertTrue(Keys.isInside("a", ""));
    assertFalse(Keys.isInside("a/bc", "a/b"));
    assertFalse(Keys.isInside("a/b", "a/b"));
  }
}
