package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class WritingTest {
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

  private final FileSystem files;
  private final Path folder;

  WritingTest(String scheme) throws IOException {
    EmbeddedStore store = EmbeddedStore.with("lake");
    files = EmbeddedStore.open(scheme + "://lake/", store.configuration());
    folder = new Path("/writing-" + scheme + "-" + System.nanoTime());
  }

  @AfterEach
  void close() throws IOException {
    files.delete(folder, true);
    files.close();
  }

  private void write(Path path, String text) throws IOException {
    try (FSDataOutputStream out = files.create(path, true)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  private FSDataOutputStream create(Path path, String option, String value) throws IOException {
    return (FSDataOutputStream) files.createFile(path).must(option, value).build();
  }

  private String read(Path path) throws IOException {
    try (FSDataInputStream in = files.open(path)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  void aFileThatWasAbortedIsNotThereAndWhatWasThereBeforeStays() throws IOException {
    Path path = new Path(folder, "aborted");
    FSDataOutputStream out = files.create(path, true);
    // These bytes are more than one part, so the store already has a part of the file.
    out.write(new byte[20 << 20]);
    Abortable.AbortableResult aborted = out.abort();
    assertFalse(aborted.alreadyClosed());
    assertNull(aborted.anyCleanupException());
    out.close();
    assertFalse(files.exists(path));
    assertTrue(out.abort().alreadyClosed());

    write(path, "old");
    FSDataOutputStream again = files.create(path, true);
    again.writeBytes("new");
    again.abort();
    assertThrows(IOException.class, () -> again.write(1));
    again.close();
    assertEquals("old", read(path));
  }

  @Test
  void aFileIsNotPublishedOnceItsFilesystemIsClosed() throws IOException {
    Path path = new Path(folder, "late");
    FileSystem other = EmbeddedStore.open(files.getUri().toString(), EmbeddedStore.with("lake").configuration());
    FSDataOutputStream out = other.create(path);
    out.writeBytes("text");
    other.close();
    assertThrows(IOException.class, () -> out.write(1));
    IOException refused = assertThrows(IOException.class, out::close);
    assertTrue(refused.getMessage().contains("its filesystem was closed"), refused::toString);
    assertFalse(files.exists(path));
  }

  @Test
  void anInterruptedEndSaysWhatIsThere() throws IOException {
    for (String before : new String[] {null, "before"}) {
      Path path = new Path(folder, "interrupted-" + before);
      if (before != null) {
        write(path, before);
      }
      FSDataOutputStream out = files.create(path, true);
      out.writeBytes("text");
      Thread.currentThread().interrupt();
      String message = "";
      try {
        out.close();
      } catch (InterruptedIOException stop) {
        message = stop.getMessage();
      }
      assertTrue(Thread.interrupted(), "the thread stays interrupted");
      // If no exception is thrown, the file was published in spite of the interrupt.
      if (message.isEmpty()) {
        assertEquals("text", read(path));
      } else {
        assertTrue(message.matches(".*(No file is there|A file of \\d+ bytes is there).*"), message);
      }
    }
  }

  @Test
  void whoComesSecondToAFileThatMustBeNewIsToldAtItsEnd() throws IOException {
    Path path = new Path(folder, "first");
    FSDataOutputStream one = files.create(path, false);
    FSDataOutputStream other = files.create(path, false);
    one.writeBytes("one");
    other.writeBytes("other");
    one.close();
    assertThrows(FileAlreadyExistsException.class, other::close);
    assertEquals("one", read(path));
    assertThrows(FileAlreadyExistsException.class, () -> files.create(path, false));
  }

  @Test
  void aConditionIsKeptAtTheEndAndNothingIsLookedForBefore() throws IOException {
    Path path = new Path(folder, "conditional");
    write(path, "old");
    FSDataOutputStream out = create(path, CONDITIONAL, "true");
    assertTrue(out.hasCapability(CONDITIONAL));
    out.writeBytes("new");
    assertThrows(FileAlreadyExistsException.class, out::close);
    assertEquals("old", read(path));
  }

  @Test
  void anEtagSaysWhichFileIsReplacedAndNoOther() throws IOException {
    Path path = new Path(folder, "etag");
    write(path, "old");
    String etag = ((EtagSource) files.getFileStatus(path)).getEtag();
    try (FSDataOutputStream out = create(path, CONDITIONAL + ".etag", etag)) {
      out.writeBytes("new");
    }
    assertEquals("new", read(path));
    FSDataOutputStream late = create(path, CONDITIONAL + ".etag", etag);
    late.writeBytes("late");
    assertThrows(FileAlreadyExistsException.class, late::close);
    assertEquals("new", read(path));
  }

  @Test
  void manySmallWritesAndLargeOnesComeOutInTheirOrder() throws IOException {
    Path path = new Path(folder, "mixed");
    byte[] expected = new byte[3_000_000];
    for (int i = 0; i < expected.length; i++) {
      expected[i] = (byte) (i * 31 + i / 1000);
    }
    try (FSDataOutputStream out = files.create(path)) {
      int at = 0;
      for (int length = 1; at < expected.length; length = length * 3 % 70_001 + 1) {
        int some = Math.min(length, expected.length - at);
        if (some == 1) {
          out.write(expected[at]);
        } else {
          out.write(expected, at, some);
        }
        at += some;
        assertEquals(at, out.getPos());
      }
    }
    try (FSDataInputStream in = files.open(path)) {
      assertArrayEquals(expected, in.readAllBytes());
    }
  }

  @Test
  void aTaskTellsThatItGoesOnAfterManyBytesAndNotAfterEach() throws IOException {
    AtomicInteger told = new AtomicInteger();
    try (FSDataOutputStream out = files.create(new Path(folder, "told"), told::incrementAndGet)) {
      for (int i = 0; i < 100_000; i++) {
        out.write(i);
      }
      assertEquals(3, told.get());
      out.write(new byte[1 << 20]);
      assertEquals(4, told.get());
    }
  }

  @Test
  void aFileInAMissingDirectoryIsOnlyMadeRecursively() throws IOException {
    Path path = new Path(folder, "missing/file");
    assertThrows(FileNotFoundException.class, () -> files.createNonRecursive(path, true, 1, (short) 1, 1, null));
    write(path, "x");
    assertTrue(files.getFileStatus(path.getParent()).isDirectory());
    write(new Path(path, "below"), "a file below a file is not looked for");
    assertThrows(IOException.class, () -> files.mkdirs(new Path(path, "directory")));
  }

  @Test
  void anUnknownOptionThatMustBeKnownIsRefused() {
    Path path = new Path(folder, "option");
    assertThrows(IllegalArgumentException.class, () -> create(path, "fs.unheard.of", "1"));
  }
}
