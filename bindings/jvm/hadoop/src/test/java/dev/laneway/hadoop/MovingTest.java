package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.Bucket;
import dev.laneway.ObjectMeta;
import dev.laneway.PutOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.fs.RemoteIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the effect of renames, deletions and listings on the bucket. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class MovingTest {
  private final FileSystem files;
  private final Connection connection;
  private final Bucket bucket;
  private final String folder;

  MovingTest(String scheme) throws IOException {
    Configuration conf = EmbeddedStore.with("lake").configuration();
    files = EmbeddedStore.open(scheme + "://lake/", conf);
    connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), conf));
    bucket = connection.bucket();
    folder = "moving-" + scheme + "-" + System.nanoTime();
  }

  @AfterEach
  void close() throws IOException {
    List<String> all = keys();
    bucket.deleteAll(all.stream().map(key -> folder + "/" + key).toList());
    connection.close();
    files.close();
  }

  private Path path(String name) {
    return new Path("/" + folder + "/" + name);
  }

  private void put(String... keys) throws IOException {
    for (String key : keys) {
      bucket.put(folder + "/" + key, ByteBuffer.wrap(key.getBytes()), PutOptions.NONE);
    }
  }

  private List<String> keys() {
    try (Stream<ObjectMeta> objects = bucket.list(folder + "/")) {
      return objects.map(object -> object.key().substring(folder.length() + 1)).toList();
    }
  }

  @Test
  void aDirectoryMovesWithItsMarkersAndWithWhatNoPathNames() throws IOException {
    put("old/", "old/a", "old/b/c", "old/empty/", "old//nameless", "older/x");
    assertTrue(files.rename(path("old"), path("new")));
    assertEquals(
        new TreeSet<>(List.of("new/", "new//nameless", "new/a", "new/b/c", "new/empty/", "older/x")),
        new TreeSet<>(keys()));
  }

  @Test
  void aDirectoryGoesIntoOneThatHoldsSomethingAndInThePlaceOfAnEmptyOne() throws IOException {
    put("from/a", "full/x", "empty/");
    assertTrue(files.rename(path("from"), path("full")));
    assertEquals(new TreeSet<>(List.of("empty/", "full/from/a", "full/x")), new TreeSet<>(keys()));
    assertTrue(files.rename(path("full/from"), path("empty")));
    assertEquals(new TreeSet<>(List.of("empty/", "empty/a", "full/x")), new TreeSet<>(keys()));
    put("other/from/b", "from/a");
    assertFalse(files.rename(path("from"), path("other")), "its name is taken there");
    assertTrue(keys().contains("from/a"));
  }

  @Test
  void theDirectoryThatTheLastFileLeavesStays() throws IOException {
    put("d/only", "e/only", "f/sub/only");
    assertTrue(files.rename(path("d/only"), path("there")));
    assertTrue(files.delete(path("e/only"), false));
    assertTrue(files.delete(path("f/sub"), true));
    assertEquals(new TreeSet<>(List.of("d/", "e/", "f/", "there")), new TreeSet<>(keys()));
    assertTrue(files.getFileStatus(path("f")).isDirectory());
  }

  @Test
  void aRenameWithinADirectoryLeavesNoMarkerBehind() throws IOException {
    put("d/one");
    assertTrue(files.rename(path("d/one"), path("d/two")));
    assertEquals(List.of("d/two"), keys());
  }

  @Test
  void whatIsInTheWayOfARenameStays() throws IOException {
    put("file", "other", "dir/x");
    assertThrows(FileAlreadyExistsException.class, () -> files.rename(path("file"), path("other")));
    assertThrows(FileAlreadyExistsException.class, () -> files.rename(path("dir"), path("other")));
    assertThrows(FileNotFoundException.class, () -> files.rename(path("none"), path("new")));
    assertThrows(IOException.class, () -> files.rename(path("dir"), path("other/below/it")));
    assertFalse(files.rename(path("dir"), path("dir/sub")));
    assertFalse(files.rename(path("dir"), path("dir")));
    assertTrue(files.rename(path("file"), path("file")));
    assertFalse(files.rename(new Path("/"), path("root")));
    assertEquals(new TreeSet<>(List.of("dir/x", "file", "other")), new TreeSet<>(keys()));
  }

  @Test
  void ofManyWhoRenameToOneNameOneSucceeds() throws Exception {
    int many = 8;
    for (int i = 0; i < many; i++) {
      put("v/" + i);
    }
    List<CompletableFuture<Boolean>> renames = new ArrayList<>();
    ExecutorService threads = Executors.newFixedThreadPool(many);
    CyclicBarrier start = new CyclicBarrier(many);
    for (int i = 0; i < many; i++) {
      Path source = path("v/" + i);
      renames.add(CompletableFuture.supplyAsync(() -> {
        try {
          start.await();
          return files.rename(source, path("v/last"));
        } catch (FileAlreadyExistsException taken) {
          return false;
        } catch (Exception failed) {
          throw new CompletionException(failed);
        }
      }, threads));
    }
    assertEquals(1, renames.stream().filter(CompletableFuture::join).count());
    threads.shutdown();
    assertEquals(many, keys().stream().filter(key -> key.startsWith("v/") && !key.equals("v/")).count(), "nobody's file is lost");
  }

  @Test
  void aDirectoryIsDeletedWholeOrNotAtAll() throws IOException {
    put("d/a", "d/b/c", "d//nameless", "dd/x");
    assertThrows(PathIsNotEmptyDirectoryException.class, () -> files.delete(path("d"), false));
    assertTrue(files.delete(path("d"), true));
    assertFalse(files.delete(path("d"), true));
    assertTrue(keys().contains("dd/x"));
    assertTrue(keys().stream().noneMatch(key -> key.startsWith("d/")));
  }

  @Test
  void manyFilesMoveAndGo() throws IOException {
    int number = 2100;
    List<CompletableFuture<?>> puts = new ArrayList<>();
    for (int i = 0; i < number; i++) {
      puts.add(bucket.putAsync(folder + "/many/" + i % 7 + "/" + i, ByteBuffer.allocate(0), PutOptions.NONE));
    }
    puts.forEach(CompletableFuture::join);
    assertTrue(files.rename(path("many"), path("moved")));
    int found = 0;
    for (RemoteIterator<LocatedFileStatus> all = files.listFiles(path("moved"), true); all.hasNext(); all.next()) {
      found++;
    }
    assertEquals(number, found);
    assertEquals(number, files.getContentSummary(path("moved")).getFileCount());
    assertEquals(8, files.getContentSummary(path("moved")).getDirectoryCount());
    assertFalse(files.exists(path("many")));
    assertTrue(files.delete(path("moved"), true));
    assertFalse(files.exists(path("moved")));
  }

  @Test
  void aListingTellsFilesAndDirectoriesInOrderAndNoMarkers() throws IOException {
    put("d/", "d/b", "d/a/x", "d/c/", "d/:d", "d//nameless");
    List<String> names = new ArrayList<>();
    for (FileStatus status : files.listStatus(path("d"))) {
      names.add(status.getPath().getName() + (status.isDirectory() ? "/" : ""));
    }
    assertEquals(List.of(":d", "a/", "b", "c/"), names);
    assertThrows(FileNotFoundException.class, () -> files.listStatus(path("none")));
    assertThrows(FileNotFoundException.class, () -> files.listFiles(path("none"), true));
    assertEquals(0, files.listStatus(path("d/c")).length);
    assertFalse(files.listFiles(path("d/c"), true).hasNext());
  }
}
