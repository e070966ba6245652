package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.Laneway;
import dev.laneway.hadoop.EmbeddedStore;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.apache.hadoop.fs.FileSystem;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.BulkDeletionFailureException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.FileRange;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests files without tables. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3", "abfss"})
class FileIOTest {
  private static final int BYTES = 3_000_000;

  private final EmbeddedStore store = EmbeddedStore.broken("lake", "delete key=*kept* status 403", "put key=*unwritten* status 403", "part key=*unwritten* status 403");
  private final LanewayFileIO io = Catalogs.io(store);
  private final byte[] expected = new byte[BYTES];
  private final String scheme;
  private final String folder;

  FileIOTest(String scheme) {
    this.scheme = scheme;
    this.folder = Catalogs.root(scheme, "lake") + "files-" + scheme + "-" + System.nanoTime() + "/";
    new Random(7).nextBytes(expected);
  }

  private String write(String name, byte[] bytes) throws IOException {
    try (PositionOutputStream out = io.newOutputFile(folder + name).create()) {
      out.write(bytes);
    }
    return folder + name;
  }

  private List<String> names() {
    return StreamSupport.stream(io.listPrefix(folder).spliterator(), false)
        .map(file -> file.location().substring(folder.length()))
        .toList();
  }

  private long requests() throws IOException {
    Location.Store asked = Location.of(folder).store();
    try (Laneway laneway = new StoreProperties(asked, io.properties()).client()) {
      return laneway.counters().requests();
    }
  }

  @Test
  void whatWasWrittenInPiecesIsReadInAllWays() throws Exception {
    String location = folder + "a b%20ü.bin";
    try (PositionOutputStream out = io.newOutputFile(location).create()) {
      int at = 0;
      for (int piece = 1; at < BYTES; piece = piece * 3 % 70_001) {
        int some = Math.min(piece, BYTES - at);
        if (some == 1) {
          out.write(expected[at]);
        } else {
          out.write(expected, at, some);
        }
        at += some;
        assertEquals(at, out.getPos());
      }
      assertFalse(io.newInputFile(location).exists(), "before its end");
    }
    InputFile file = io.newInputFile(location);
    assertTrue(file.exists());
    assertEquals(BYTES, file.getLength());
    try (SeekableInputStream in = file.newStream()) {
      assertArrayEquals(expected, in.readAllBytes());
      assertEquals(-1, in.read());
      in.seek(1_000_000);
      assertEquals(expected[1_000_000] & 0xff, in.read());
      assertEquals(1_000_001, in.getPos());
      assertEquals(10, in.skip(10));
      byte[] some = in.readNBytes(100_000);
      assertArrayEquals(Arrays.copyOfRange(expected, 1_000_011, 1_100_011), some);
      assertThrows(IllegalArgumentException.class, () -> in.seek(-1));

      RangeReadable ranges = assertInstanceOf(RangeReadable.class, in);
      byte[] into = new byte[1010];
      ranges.readFully(2_000_000, into, 5, 1000);
      assertArrayEquals(Arrays.copyOfRange(expected, 2_000_000, 2_001_000), Arrays.copyOfRange(into, 5, 1005));
      assertEquals(10, ranges.readTail(into, 0, 10));
      assertArrayEquals(Arrays.copyOfRange(expected, BYTES - 10, BYTES), Arrays.copyOf(into, 10));
      assertThrows(EOFException.class, () -> ranges.readFully(BYTES - 5, into, 0, 10));
    }
  }

  @Test
  void rangesAreReadTogetherByFewRequests() throws Exception {
    String location = write("ranges.parquet", expected);
    try (SeekableInputStream in = io.newInputFile(location, BYTES).newStream()) {
      RangeReadable readable = (RangeReadable) in;
      List<FileRange> ranges = IntStream.range(0, 20).mapToObj(i -> range(i * 20_000L, 10_000)).toList();
      List<FileRange> mixed = new ArrayList<>(ranges);
      mixed.add(range(400_000, 0));
      Collections.reverse(mixed);
      long before = requests();
      readable.readVectored(mixed, ByteBuffer::allocate);
      for (FileRange range : ranges) {
        byte[] read = new byte[10_000];
        range.byteBuffer().get().get(read);
        int at = (int) range.offset();
        assertArrayEquals(Arrays.copyOfRange(expected, at, at + 10_000), read);
      }
      assertTrue(requests() - before <= 4, () -> "each range took a request");
      assertThrows(
          IllegalArgumentException.class,
          () -> readable.readVectored(List.of(range(0, 10), range(9, 10)), ByteBuffer::allocate));
      assertThrows(
          EOFException.class, () -> readable.readVectored(List.of(range(BYTES - 5, 10)), ByteBuffer::allocate));
    }
  }

  private static FileRange range(long offset, int length) {
    return new FileRange(new CompletableFuture<>(), offset, length);
  }

  @Test
  void aFileAndItsIndexComeWithTheOpeningRequest() throws Exception {
    String manifest = write("m0.avro", Arrays.copyOf(expected, 900_000));
    String table = write("table.parquet", expected);
    // Azure has no ranges from the end, so opening a file takes one more request for its size.
    long opening = scheme.equals("abfss") ? 2 : 1;
    long before = requests();
    try (SeekableInputStream in = io.newInputFile(manifest, 900_000).newStream()) {
      assertArrayEquals(Arrays.copyOf(expected, 900_000), in.readAllBytes());
    }
    assertEquals(before + opening, requests());
    try (SeekableInputStream in = io.newInputFile(table, BYTES).newStream()) {
      in.seek(BYTES - 500_000);
      assertArrayEquals(Arrays.copyOfRange(expected, BYTES - 500_000, BYTES), in.readAllBytes());
    }
    assertEquals(before + 2 * opening, requests());
  }

  @Test
  void ofTwoWhoCreateAFileTheSecondIsToldAndTheFirstOnesStays() throws Exception {
    PositionOutputStream first = io.newOutputFile(folder + "v1.json").create();
    PositionOutputStream second = io.newOutputFile(folder + "v1.json").create();
    first.write(1);
    second.write(2);
    first.close();
    assertThrows(AlreadyExistsException.class, second::close);
    try (SeekableInputStream in = io.newInputFile(folder + "v1.json").newStream()) {
      assertArrayEquals(new byte[] {1}, in.readAllBytes());
    }
    try (PositionOutputStream over = io.newOutputFile(folder + "v1.json").createOrOverwrite()) {
      over.write(3);
    }
    try (SeekableInputStream in = io.newOutputFile(folder + "v1.json").toInputFile().newStream()) {
      assertArrayEquals(new byte[] {3}, in.readAllBytes());
    }
  }

  @Test
  void aFileWhoseWriteFailsIsNotThere() throws Exception {
    PositionOutputStream out = io.newOutputFile(folder + "unwritten").create();
    out.write(expected);
    assertThrows(IOException.class, out::close);
    out.close();
    assertThrows(IOException.class, () -> out.write(1));
    assertFalse(io.newInputFile(folder + "unwritten").exists());
  }

  @Test
  void whatIsMissingIsToldAndItsDeletionIsDone() {
    InputFile missing = io.newInputFile(folder + "missing", 10);
    assertFalse(missing.exists());
    assertThrows(NotFoundException.class, missing::newStream);
    assertThrows(NotFoundException.class, () -> io.newInputFile(folder + "missing").getLength());
    io.deleteFile(folder + "missing");
    assertThrows(ValidationException.class, () -> io.newInputFile("hdfs://lake/x"));
    assertThrows(ValidationException.class, () -> io.newInputFile("/tmp/x"));
  }

  @Test
  void aFileIsNotThereWhoseWriterHasSwallowedAFailure() throws Exception {
    PositionOutputStream out = io.newOutputFile(folder + "unwritten").createOrOverwrite();
    byte[] some = new byte[4 << 20];
    IOException failed = assertThrows(IOException.class, () -> {
      for (int i = 0; i < 40; i++) {
        out.write(some);
      }
    });
    assertSame(failed, assertThrows(IOException.class, out::close).getCause());
    assertFalse(io.newInputFile(folder + "unwritten").exists());
  }

  @Test
  void manyFilesAreListedAndDeletedTogether() throws Exception {
    List<String> locations = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      locations.add(write("d/" + i + "%2f.parquet", new byte[i]));
    }
    write("d/", new byte[0]);
    write("e", new byte[1]);
    assertEquals(31, names().size(), "files, and no marker of a directory");
    for (FileInfo file : io.listPrefix(folder + "d/7")) {
      assertEquals(folder + "d/7%2f.parquet", file.location());
      assertEquals(7, file.size());
      assertTrue(file.createdAtMillis() > 0);
    }
    List<String> going = new ArrayList<>(locations.subList(0, 20));
    going.add(folder + "missing");
    long before = requests();
    io.deleteFiles(going);
    assertTrue(requests() - before <= 2, "each file took a request");
    assertEquals(11, names().size());
    io.deletePrefix(folder);
    assertEquals(List.of(), names());
    assertFalse(io.newInputFile(folder + "d/").exists(), "its marker goes, too");
  }

  @Test
  void whatCannotBeDeletedIsCountedAndTheRestGoes() throws Exception {
    List<String> locations = List.of(write("a", new byte[1]), write("kept", new byte[1]), write("z", new byte[1]));
    BulkDeletionFailureException failed =
        assertThrows(BulkDeletionFailureException.class, () -> io.deleteFiles(locations));
    assertEquals(1, failed.numberFailedObjects());
    assertEquals(List.of("kept"), names());
    assertThrows(BulkDeletionFailureException.class, () -> io.deletePrefix(folder));
    assertThrows(RuntimeException.class, () -> io.deleteFile(folder + "kept"));
  }

  @Test
  void aFileIOThatCameOutOfItsBytesReadsAndWrites() throws Exception {
    String location = write("x", new byte[] {1, 2, 3});
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(io);
    }
    io.close();
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()));
        FileIO copy = (FileIO) in.readObject()) {
      assertEquals(io.properties(), copy.properties());
      try (SeekableInputStream read = copy.newInputFile(location).newStream()) {
        assertArrayEquals(new byte[] {1, 2, 3}, read.readAllBytes());
      }
    }
  }

  @SuppressWarnings("deprecation")
  @Test
  void bytesAreCountedWithHadoopsStatistics() throws Exception {
    String name = Location.of(folder).store().family;
    FileSystem.Statistics.StatisticsData counted = FileSystem.getStatistics(name, null).getThreadStatistics();
    long wrote = counted.getBytesWritten();
    long had = counted.getBytesRead();
    String location = write("counted", expected);
    assertEquals(wrote + BYTES, counted.getBytesWritten());
    try (SeekableInputStream in = io.newInputFile(location).newStream()) {
      in.readNBytes(1000);
      ((RangeReadable) in).readFully(5000, new byte[100], 0, 100);
      ((RangeReadable) in).readVectored(List.of(range(10, 20)), ByteBuffer::allocate);
    }
    assertEquals(had + 1120, counted.getBytesRead());
  }
}
