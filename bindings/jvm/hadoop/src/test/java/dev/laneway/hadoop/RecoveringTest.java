package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Laneway retries after a single failure of the network or the store, so each of Hadoop's operations succeeds. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a"})
class RecoveringTest {
  /** The rules select requests by a word in the key. Each rule hits one request. */
  private static final String[] RULES = {
    "get:1 key=*read-reset* reset@1000",
    "get:1 key=*read-truncate* truncate@1000",
    "get:1 key=*read-drop* drop",
    "get:1 key=*read-busy* status 503",
    "put:1 key=*write-lost* lose-answer",
    "put:1 key=*write-reset* reset@1000",
    "put:1 key=*write-busy* status 503",
    "part:1 key=*write-large* reset@100000",
    "complete:1 key=*write-large* lose-answer",
    "copy:1 key=*move-lost* lose-answer",
    "copy:1 key=*move-busy* status 503",
    "delete:1 key=*move-gone* lose-answer",
    "delete-many:1 lose-answer",
    "batch:1 lose-answer",
    "list:1 status 503",
  };

  private final FileSystem files;
  private final Connection connection;
  private final String folder;
  private final byte[] bytes = new byte[1 << 20];

  RecoveringTest(String scheme) throws IOException {
    // Each rule is for only one dialect, so each dialect has a store of its own.
    String lake = "lake-" + scheme;
    Configuration conf = EmbeddedStore.broken(lake, RULES).configuration();
    files = EmbeddedStore.open(scheme + "://" + lake + "/", conf);
    connection = Connection.of(Settings.of(URI.create(scheme + "://" + lake + "/"), conf));
    folder = "recovering-" + System.nanoTime();
    new Random(3).nextBytes(bytes);
  }

  @AfterEach
  void close() throws IOException {
    assertEquals(List.of(), connection.bucket().multipartUploads(folder + "/"));
    connection.close();
    files.close();
  }

  private Path path(String name) {
    return new Path("/" + folder + "/" + name);
  }

  private Path write(String name, byte[] content) throws IOException {
    try (FSDataOutputStream out = files.create(path(name), false)) {
      out.write(content);
    }
    return path(name);
  }

  private byte[] read(Path path) throws IOException {
    try (FSDataInputStream in = files.open(path)) {
      return in.readAllBytes();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"read-reset", "read-truncate", "read-drop", "read-busy"})
  void aReadThatBreaksOffGoesOn(String name) throws Exception {
    Path path = write(name, bytes);
    try (FSDataInputStream in = files.open(path)) {
      byte[] some = new byte[300_000];
      in.readFully(100_000, some);
      assertArrayEquals(Arrays.copyOfRange(bytes, 100_000, 400_000), some);
      List<FileRange> ranges = IntStream.range(0, 5).mapToObj(i -> FileRange.createFileRange(i * 100_000L, 50_000)).toList();
      in.readVectored(ranges, ByteBuffer::allocateDirect);
      for (FileRange range : ranges) {
        byte[] got = new byte[50_000];
        range.getData().get().get(got);
        int at = (int) range.getOffset();
        assertArrayEquals(Arrays.copyOfRange(bytes, at, at + 50_000), got);
      }
      assertArrayEquals(bytes, in.readAllBytes());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"write-lost", "write-reset", "write-busy"})
  void aFileIsWrittenOnceWhateverBecomesOfTheAnswer(String name) throws IOException {
    assertArrayEquals(bytes, read(write(name, bytes)));
  }

  @Test
  void aLargeFileIsWrittenOnceWhateverBecomesOfItsParts() throws IOException {
    byte[] large = new byte[24 << 20];
    new Random(5).nextBytes(large);
    assertArrayEquals(large, read(write("write-large", large)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"move-lost", "move-busy", "move-gone"})
  void aFileMovesOnceWhateverBecomesOfTheAnswer(String name) throws IOException {
    Path source = write(name, bytes);
    Path place = path("there-" + name);
    assertTrue(files.rename(source, place));
    assertFalse(files.exists(source));
    assertArrayEquals(bytes, read(place));
  }

  @Test
  void aDirectoryIsListedAndDeleted() throws IOException {
    for (int i = 0; i < 20; i++) {
      write("d/" + i, new byte[] {1});
    }
    FileStatus[] listed = files.listStatus(path("d"));
    assertEquals(20, listed.length);
    assertTrue(files.delete(path("d"), true));
    assertFalse(files.exists(path("d")));
  }
}
