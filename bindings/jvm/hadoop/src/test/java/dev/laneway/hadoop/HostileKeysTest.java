package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.Bucket;
import dev.laneway.PutOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Dangerous keys that anybody may have stored. Copies of such objects must stay inside the destination folder. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a"})
class HostileKeysTest {
  /** Keys that no path can name, and that listings leave out. */
  private static final List<String> NAMELESS =
      List.of("../x", "../../x", "a/../../x", "a//b", "/etc/x", "./x", "a/./b", "a/..", "..", "//x", "../x/");

  /** Keys that are odd, but valid names. */
  private static final List<String> NAMES = List.of("...", "..\\x", "%2e%2e%2fx", "~", "-rf", "a b ", "${x}");

  /** A name that listings return, but that Hadoop itself refuses when it is joined to a folder's name. */
  private static final String WITH_COLON = "c:\\x";

  @TempDir java.nio.file.Path top;

  /** The names, with a line feed where the store allows one: GCS doesn't. */
  private final List<String> names;

  private final FileSystem files;
  private final Connection connection;
  private final Bucket bucket;
  private final Configuration conf;
  private final Path folder;

  HostileKeysTest(String scheme) throws IOException {
    names = scheme.equals("gs") ? NAMES : Stream.concat(NAMES.stream(), Stream.of("a\nb")).toList();
    conf = EmbeddedStore.with("lake").configuration();
    files = EmbeddedStore.open(scheme + "://lake/", conf);
    connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), conf));
    bucket = connection.bucket();
    folder = new Path("/hostile-" + scheme + "-" + System.nanoTime());
  }

  @AfterEach
  void close() throws IOException {
    connection.close();
    files.close();
  }

  private void put(List<String> keys) throws IOException {
    for (String key : keys) {
      bucket.put(folder.toUri().getPath().substring(1) + "/" + key, ByteBuffer.wrap(key.getBytes(StandardCharsets.UTF_8)), PutOptions.NONE);
    }
  }

  /** Returns all files below the folder around the target. */
  private Set<String> written() throws IOException {
    try (Stream<java.nio.file.Path> all = Files.walk(top)) {
      return all.filter(Files::isRegularFile).map(file -> top.relativize(file).toString()).collect(Collectors.toCollection(TreeSet::new));
    }
  }

  @Test
  void aListingHasNoPathThatLeadsElsewhere() throws IOException {
    put(NAMELESS);
    put(names);
    put(List.of(WITH_COLON));
    Set<String> named = new TreeSet<>();
    RemoteIterator<LocatedFileStatus> listed = files.listFiles(folder, true);
    while (listed.hasNext()) {
      named.add(listed.next().getPath().toUri().getPath().substring(folder.toUri().getPath().length() + 1));
    }
    Set<String> all = new TreeSet<>(names);
    all.add(WITH_COLON);
    assertEquals(all, named);
    Set<String> children =
        Arrays.stream(files.listStatus(folder)).map(status -> status.getPath().getName()).collect(Collectors.toSet());
    assertTrue(children.stream().noneMatch(name -> name.isEmpty() || name.equals(".") || name.equals("..")), children::toString);
  }

  @Test
  void whatIsCopiedIntoAFolderStaysInIt() throws IOException {
    put(NAMELESS);
    put(names);
    java.nio.file.Path target = Files.createDirectories(top.resolve("deep/down/target"));
    files.copyToLocalFile(false, folder, new Path(target.toUri()), true);
    String inside = "deep/down/target/" + folder.getName() + "/";
    assertEquals(names.stream().map(name -> inside + name).collect(Collectors.toCollection(TreeSet::new)), written());
    for (String name : names) {
      assertEquals(name, Files.readString(top.resolve(inside + name)));
    }
  }

  /** No local file can have the first of these names, and Hadoop refuses the second. */
  @Test
  void aNameThatNoLocalFileCanHaveIsAnErrorOnTheWayDown() throws IOException {
    for (String name : List.of("b\0c", WITH_COLON)) {
      put(List.of("a", name));
      assertEquals(2, files.listStatus(folder).length);
      Exception refused = assertThrows(Exception.class, () -> files.copyToLocalFile(false, folder, new Path(top.toUri()), true));
      assertTrue(refused instanceof IOException || refused instanceof IllegalArgumentException, refused::toString);
      assertTrue(Set.of(folder.getName() + "/a").containsAll(written()), written()::toString);
      files.delete(folder, true);
    }
  }

  /**
   * An object, and other objects whose keys begin with its key and a slash. A disk can't have a file and a folder of
   * one name, so Hadoop puts the file into the folder.
   */
  @Test
  void aFileThatIsAFolderTooStaysInsideOnTheWayDown() throws IOException {
    put(List.of("x", "x/y"));
    files.copyToLocalFile(false, folder, new Path(top.toUri()), true);
    String inside = folder.getName() + "/x/";
    assertEquals(Set.of(inside + "x", inside + "y"), written());
    assertEquals("x", Files.readString(top.resolve(inside + "x")));
    assertEquals("x/y", Files.readString(top.resolve(inside + "y")));
  }

  /** Hadoop's own paths are resolved before any store is asked. */
  @Test
  void aPathThatNamesSuchAKeyIsNotFoundOrAnotherKey() throws IOException {
    put(NAMELESS);
    put(List.of("x"));
    assertEquals(new Path(folder, "x"), new Path(folder, "a/../x"));
    assertEquals("x", read("a/../x"));
    assertEquals(new Path(folder, "a/b"), new Path(folder, "a//b"));
    assertThrows(FileNotFoundException.class, () -> read("a//b"));
    put(List.of("a/b"));
    assertEquals("a/b", read("a//b"));
  }

  private String read(String path) throws IOException {
    try (InputStream in = files.open(new Path(folder, path))) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }
}
