package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.Bucket;
import dev.laneway.LanewayException;
import dev.laneway.ObjectMeta;
import dev.laneway.ObjectWriter;
import dev.laneway.PutOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** The objects that are left if the store refuses some requests of an operation. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a"})
class FailingTest {
  private final FileSystem files;
  private final Connection connection;
  private final Bucket bucket;
  private final String folder;

  FailingTest(String scheme) throws IOException {
    List<String> rules = new ArrayList<>(List.of(
        "put key=*unwritten* status 403",
        "part key=*unwritten* status 403",
        "copy key=*uncopied* status 403",
        "delete key=*kept* status 403",
        "delete key=*outdated* status 412",
        "begin key=*unbegun* status 403"));
    if (scheme.equals("gs")) {
      // GCS would move this object by one request. After the refusal, Laneway copies the object and removes it.
      rules.add("copy:1 key=*d/place* status 400");
    }
    EmbeddedStore store = EmbeddedStore.broken("lake", rules.toArray(String[]::new));
    Configuration conf = store.configuration();
    files = EmbeddedStore.open(scheme + "://lake/", conf);
    connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), conf));
    bucket = connection.bucket();
    folder = "failing-" + scheme + "-" + System.nanoTime();
  }

  @AfterEach
  void close() throws IOException {
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
      return objects.map(object -> object.key().substring(folder.length() + 1)).filter(key -> !key.isEmpty()).toList();
    }
  }

  @Test
  void aFailureNamesHadoopsKeys() {
    Configuration conf = EmbeddedStore.with("lake").configuration();
    conf.set("fs.s3a.endpoint", "http://");
    conf.set("fs.gs.storage.root.url", "http://");
    String scheme = files.getUri().getScheme();
    String key = scheme.equals("gs") ? "fs.gs.storage.root.url" : "fs.s3a.endpoint";
    IOException failed = assertThrows(IOException.class, () -> {
      try (FileSystem wrong = EmbeddedStore.open(scheme + "://lake/", conf)) {
        wrong.exists(new Path("/a"));
      }
    });
    assertTrue(failed.getMessage().contains(key), failed::toString);
    assertFalse(failed.getMessage().contains("Builder"), failed::toString);
  }

  @Test
  void aRenameThatFailsLeavesItsSourceAndNoCopies() throws IOException {
    put("d/a", "d/b/c", "d/uncopied", "d/z");
    assertThrows(AccessDeniedException.class, () -> files.rename(path("d"), path("e")));
    assertEquals(List.of("d/a", "d/b/c", "d/uncopied", "d/z"), keys());
  }

  /** Returns renames during which another writer writes these files, after the checks and before the first copy. */
  private Renaming renaming(String... others) {
    Tally tally = new Tally(new FileSystem.Statistics("")) {
      private boolean isWritten;

      @Override
      void copied() {
        try {
          if (!isWritten) {
            FailingTest.this.put(others);
          }
          isWritten = true;
        } catch (IOException failed) {
          throw new UncheckedIOException(failed);
        }
      }
    };
    Keys keys = new Keys(files.getUri());
    Lookup lookup = new Lookup(bucket, keys, tally, 1, "");
    Directories directories = new Directories(connection, keys, lookup, tally);
    return new Renaming(
        bucket, keys, lookup, directories, new Deletion(bucket, keys, lookup, directories, tally), tally);
  }

  @Test
  void aRenamedDirectoryReplacesNoFileOfAnotherWriter() throws IOException {
    put("d/a", "d/b", "d/c");
    Renaming renaming = renaming("e/b");
    assertThrows(FileAlreadyExistsException.class, () -> renaming.rename(path("d"), path("e")));
    assertEquals(List.of("d/a", "d/b", "d/c", "e/b"), keys());
    try (FSDataInputStream in = files.open(path("e/b"))) {
      assertEquals("e/b", new String(in.readAllBytes()));
    }
  }

  @Test
  void aFailedRenameRemovesNoFileOfAnotherWriter() throws IOException {
    put("d/a", "d/uncopied");
    Renaming renaming = renaming("e/other", "e/uncopied");
    assertThrows(AccessDeniedException.class, () -> renaming.rename(path("d"), path("e")));
    assertEquals(List.of("d/a", "d/uncopied", "e/other", "e/uncopied"), keys());
  }

  /** The store reports that the source was replaced since the copy. The copy then stays, because it is the only one. */
  @Test
  void aRenameWhoseSourceIsReplacedMeanwhileTakesItsCopyForNobodyElses() throws IOException {
    put("d/other", "d/outdated");
    IOException failed = assertThrows(IOException.class, () -> files.rename(path("d/outdated"), path("d/place")));
    assertFalse(failed instanceof FileAlreadyExistsException, failed::toString);
    assertTrue(failed.getMessage().contains("replaced meanwhile"), failed::toString);
    assertEquals(List.of("d/other", "d/outdated", "d/place"), keys());
  }

  @Test
  void aDeletionThatFailsSaysSoAndTriesTheRest() throws IOException {
    put("d/a", "d/kept", "d/z");
    assertThrows(IOException.class, () -> files.delete(path("d"), true));
    assertEquals(List.of("d/kept"), keys());
  }

  @Test
  void aFileWhoseEndFailsIsNotThere() throws IOException {
    FSDataOutputStream out = files.create(path("unwritten"));
    out.writeBytes("text");
    assertThrows(AccessDeniedException.class, out::close);
    out.close();
    assertFalse(files.exists(path("unwritten")));
  }

  @Test
  void aCommittersFileWhoseUploadDoesNotBeginFailsAsTheStoreSays() throws IOException {
    FSDataOutputStream out = files.create(path(Uncommitted.JOB + "1/attempt/base/unbegun"));
    out.writeBytes("text");
    IOException failed = assertThrows(IOException.class, out::close);
    assertTrue(Failures.unwrapped(failed.getCause()) instanceof LanewayException, failed::toString);
    assertEquals(0, failed.getSuppressed().length, "nothing is left to be given up");
  }

  @Test
  void aFileIsNotThereWhoseWriterHasSwallowedAnExceptionOfAnyKind() throws IOException {
    IllegalStateException stop = new IllegalStateException("stop");
    FSDataOutputStream out = files.create(path("swallowed"), () -> {
      throw stop;
    });
    assertSame(stop, assertThrows(IllegalStateException.class, () -> out.write(new byte[100_000])));
    IOException failed = assertThrows(IOException.class, out::close);
    assertSame(stop, failed.getCause().getCause());
    assertEquals(List.of(), keys());
  }

  @Test
  void aWriterOfWhichAWriteHasFailedCanOnlyBeGivenUp() throws IOException {
    try (ObjectWriter writer = bucket.writer(folder + "/unwritten", PutOptions.NONE)) {
      assertThrows(IOException.class, () -> {
        for (int i = 0; i < 40; i++) {
          writer.write(ByteBuffer.allocate(4 << 20));
        }
      });
      for (Executable more : List.<Executable>of(() -> writer.write(ByteBuffer.allocate(1)), writer::finish)) {
        IOException refused = assertThrows(IOException.class, more);
        assertTrue(refused.getMessage().contains("a write has failed"), refused::toString);
      }
    }
    assertEquals(List.of(), keys());
  }

  @Test
  void aFileOfWhichAWriteHasFailedIsNeverThere() throws IOException {
    FSDataOutputStream out = files.create(path("unwritten"));
    byte[] some = new byte[4 << 20];
    IOException failed = assertThrows(IOException.class, () -> {
      for (int i = 0; i < 40; i++) {
        out.write(some);
      }
    });
    assertTrue(failed instanceof AccessDeniedException, failed::toString);
    assertThrows(IOException.class, out::close);
    assertEquals(List.of(), keys());
    assertEquals(List.of(), bucket.multipartUploads(folder + "/"));
  }
}
