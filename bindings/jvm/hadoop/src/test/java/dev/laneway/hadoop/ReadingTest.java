package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Options.HandleOpt;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathHandle;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class ReadingTest {
  private static final int BYTES = 3_000_000;

  /** The requests that open a file and read its end. Azure has no ranges from the end, so it takes one more for the size. */
  private static final Map<String, Integer> OPENING = Map.of("gs", 1, "s3a", 1, "abfss", 2);

  private final String scheme;
  private final Configuration conf = EmbeddedStore.with("lake").configuration();
  private final FileSystem files;
  private final Path path;
  private final byte[] expected = new byte[BYTES];

  ReadingTest(String scheme) throws IOException {
    this.scheme = scheme;
    files = EmbeddedStore.open(scheme + "://lake/", conf);
    path = new Path("/reading-" + scheme + "-" + System.nanoTime());
    new Random(7).nextBytes(expected);
  }

  @BeforeEach
  void write() throws IOException {
    try (FSDataOutputStream out = files.create(path)) {
      out.write(expected);
    }
  }

  @AfterEach
  void close() throws IOException {
    files.delete(path, true);
    files.close();
  }

  /** Returns the number of requests that the process's engine has sent. */
  private long requests() throws IOException {
    try (Connection connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), conf))) {
      return connection.counters().orElseThrow().requests();
    }
  }

  @Test
  void readsOfAllSizesAndPlacesGiveTheBytesThatAreThere() throws IOException {
    Random random = new Random(11);
    try (FSDataInputStream in = files.open(path)) {
      for (int i = 0; i < 300; i++) {
        int at = random.nextInt(BYTES);
        int length = Math.min(BYTES - at, 1 + random.nextInt(i % 3 == 0 ? 100_000 : 300));
        byte[] bytes = new byte[length];
        switch (i % 4) {
          case 0 -> in.readFully(at, bytes);
          case 1 -> {
            in.seek(at);
            in.readFully(bytes);
            assertEquals(at + length, in.getPos());
          }
          case 2 -> {
            in.seek(at);
            for (int b = 0; b < Math.min(length, 40); b++) {
              assertEquals(expected[at + b] & 0xff, in.read());
            }
            in.unbuffer();
            in.readFully(at, bytes);
          }
          default -> {
            ByteBuffer direct = ByteBuffer.allocateDirect(length);
            in.readFully(at, direct);
            direct.flip().get(bytes);
          }
        }
        assertArrayEquals(Arrays.copyOfRange(expected, at, at + length), bytes);
      }
    }
  }

  @Test
  void aFileWhoseStatusIsKnownIsOpenedWithoutARequest() throws Exception {
    FileStatus status = files.getFileStatus(path);
    FileStatus listed = files.listStatus(path)[0];
    for (FileStatus known : new FileStatus[] {status, listed}) {
      long before = requests();
      try (FSDataInputStream in = files.openFile(path).withFileStatus(known).build().get()) {
        assertEquals(before, requests());
        in.readFully(1000, new byte[1000]);
        assertEquals(before + 1, requests());
      }
    }
  }

  @Test
  void openingADirectorySaysThatItIsOne() throws Exception {
    Path directory = new Path(path + "-directory");
    files.mkdirs(directory);
    long before = requests();
    FileNotFoundException refused = assertThrows(FileNotFoundException.class, () -> files.open(directory));
    assertEquals(files.makeQualified(directory) + " is a directory", refused.getMessage());
    assertEquals(before + 2, requests());
    ExecutionException later =
        assertThrows(ExecutionException.class, () -> files.openFile(directory).build().get());
    assertEquals(refused.getMessage(), later.getCause().getMessage());
    Path missing = new Path(path + "-missing");
    FileNotFoundException absent = assertThrows(FileNotFoundException.class, () -> files.open(missing));
    assertTrue(absent.getMessage().contains("not found"), absent::toString);
    files.delete(directory, true);
  }

  @Test
  void aSmallFileThatIsReadAsAWholeTakesOneRequest() throws Exception {
    Path small = new Path(path.getParent(), "small");
    try (FSDataOutputStream out = files.create(small)) {
      out.write(expected, 0, 400_000);
    }
    long before = requests();
    try (FSDataInputStream in =
        files.openFile(small).opt("fs.option.openfile.read.policy", "whole-file").build().get()) {
      byte[] read = new byte[400_000];
      in.readFully(0, read);
      assertArrayEquals(Arrays.copyOf(expected, 400_000), read);
      assertArrayEquals(read, in.readAllBytes());
    }
    assertEquals(before + 1, requests());
  }

  @Test
  void theIndexAtTheEndOfATableComesWithTheOpeningRequest() throws Exception {
    long before = requests();
    try (FSDataInputStream in =
        files.openFile(path).opt("fs.option.openfile.read.policy", "parquet").build().get()) {
      in.seek(BYTES - 8);
      in.readInt();
      in.seek(BYTES - 400_000);
      byte[] index = new byte[399_992];
      in.readFully(index);
      assertArrayEquals(Arrays.copyOfRange(expected, BYTES - 400_000, BYTES - 8), index);
    }
    assertEquals(before + OPENING.get(scheme), requests());
  }

  @Test
  void aSmallFileTakesOneRequest() throws IOException {
    Path small = new Path(path.getParent(), path.getName() + "-small");
    try (FSDataOutputStream out = files.create(small)) {
      out.writeBytes("one line\n");
    }
    long before = requests();
    try (FSDataInputStream in = files.open(small)) {
      assertEquals("one line\n", new String(in.readAllBytes()));
    }
    assertEquals(before + OPENING.get(scheme), requests());
    files.delete(small, false);
  }

  @Test
  void whatWasReadAheadIsLetGoOf() throws IOException {
    try (FSDataInputStream in = files.open(path)) {
      in.seek(10);
      assertEquals(expected[10] & 0xff, in.read());
      in.seek(50_000);
      assertEquals(expected[50_000] & 0xff, in.read());
      in.unbuffer();
      long before = requests();
      assertEquals(expected[50_001] & 0xff, in.read());
      // Read-ahead requests that were under way are counted too.
      assertTrue(requests() > before, "it is asked for anew");
    }
  }

  @Test
  void aReplacedFileIsNotMixedWithTheOldOne() throws IOException {
    try (FSDataInputStream in = files.open(path)) {
      in.readFully(0, new byte[10]);
      try (FSDataOutputStream out = files.create(path, true)) {
        out.write(new byte[BYTES]);
      }
      assertThrows(IOException.class, () -> in.readFully(1_000_000, new byte[10]));
    }
  }

  @Test
  void rangesEndWithTheirStream() throws IOException {
    List<FileRange> ranges =
        IntStream.range(0, 20).mapToObj(i -> FileRange.createFileRange(i * 100_000L, 50_000)).toList();
    FSDataInputStream in = files.open(path);
    in.readVectored(ranges, ByteBuffer::allocate);
    in.close();
    for (FileRange range : ranges) {
      range.getData().handle((bytes, failure) -> {
        // Ranges that arrived before the close are right, and the others fail with an IOException.
        if (failure == null) {
          byte[] read = new byte[50_000];
          bytes.get(read);
          int at = (int) range.getOffset();
          assertArrayEquals(Arrays.copyOfRange(expected, at, at + 50_000), read);
        } else {
          assertTrue(Failures.unwrapped(failure) instanceof IOException, failure::toString);
        }
        return null;
      }).join();
    }
    assertThrows(IOException.class, () -> in.readVectored(ranges, ByteBuffer::allocate));
  }

  @Test
  void aHandleOpensTheFileThatItWasMadeOfAndNoOther() throws Exception {
    PathHandle exact = files.getPathHandle(files.getFileStatus(path), HandleOpt.exact());
    PathHandle byName = files.getPathHandle(files.getFileStatus(path), HandleOpt.path());
    try (FSDataInputStream in = files.open(exact)) {
      assertEquals(expected[0] & 0xff, in.read());
    }
    try (FSDataOutputStream out = files.create(path, true)) {
      out.writeBytes("another");
    }
    assertThrows(InvalidPathHandleException.class, () -> files.open(exact));
    try (FSDataInputStream in = files.open(byName)) {
      assertEquals('a', in.read());
    }
    assertThrows(
        UnsupportedOperationException.class,
        () -> files.getPathHandle(files.getFileStatus(path), HandleOpt.reference()));
  }

  @Test
  void whoComesByFileContextOrByTheLibrarysOwnSchemeFindsTheSame() throws Exception {
    FileContext context = FileContext.getFileContext(URI.create(scheme + "://lake/"), conf);
    assertEquals(BYTES, context.getFileStatus(path).getLen());
    Path own = new Path("laneway+" + scheme + "://lake" + path);
    try (FileSystem found = FileSystem.newInstance(own.toUri(), conf)) {
      assertEquals(BYTES, found.getFileStatus(own).getLen());
    }
  }

  @Test
  void aDirectoryIsNotOpenedAndAClosedFilesystemDoesNothing() throws IOException {
    Path directory = new Path(path.getParent(), path.getName() + "-dir");
    files.mkdirs(directory);
    assertThrows(FileNotFoundException.class, () -> files.open(directory));
    assertThrows(FileNotFoundException.class, () -> files.open(new Path("/")));
    files.delete(directory, true);
    FileSystem other = EmbeddedStore.open(scheme + "://lake/", conf);
    other.close();
    assertThrows(IOException.class, () -> other.getFileStatus(path));
    assertFalse(files.exists(directory));
  }
}
