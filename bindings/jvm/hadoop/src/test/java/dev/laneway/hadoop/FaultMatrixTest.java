package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.laneway.hadoop.FaultCells.About;
import dev.laneway.hadoop.FaultCells.Operation;
import dev.laneway.hadoop.FaultCells.Place;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/**
 * Tests Hadoop's filesystem with the faults of the embedded store: files are exact, or an IOException states the
 * reason.
 */
class FaultMatrixTest {
  /** A position after the bytes that come with the opening request. */
  private static final int FROM = 570_000;
  private static final int SOME = 20_000;

  private static final List<Operation<FileSystem>> OPERATIONS = List.of(
      Operation.reading("read", "get", About.RANGE, (files, place) -> {
        try (FSDataInputStream in = files.open(new Path(place.url() + "k"))) {
          return FaultCells.isRead(in.readAllBytes());
        }
      }),
      Operation.reading("read-range", "get", About.RANGE, (files, place) -> {
        try (FSDataInputStream in = files.open(new Path(place.url() + "k"))) {
          byte[] some = new byte[SOME];
          in.readFully(FROM, some);
          return FaultCells.isRead(FROM, some, SOME);
        }
      }),
      Operation.reading("read-vectored", "get", About.RANGE, (files, place) -> {
        try (FSDataInputStream in = files.open(new Path(place.url() + "k"))) {
          List<FileRange> ranges = List.of(FileRange.createFileRange(FROM, SOME), FileRange.createFileRange(FROM + SOME + 9, 100));
          in.readVectored(ranges, ByteBuffer::allocate);
          for (FileRange range : ranges) {
            ByteBuffer came = range.getData().get();
            byte[] bytes = new byte[came.remaining()];
            came.get(bytes);
            if (!FaultCells.isRead((int) range.getOffset(), bytes, range.getLength())) {
              return false;
            }
          }
          return true;
        }
      }),
      Operation.reading("status", "head", About.HEADERS, (files, place) -> {
        FileStatus status = files.getFileStatus(new Path(place.url() + "k"));
        return status.isFile() && status.getLen() == FaultCells.BYTES.length;
      }),
      Operation.reading("list", "list", About.DOCUMENT, (files, place) -> {
        FileStatus[] found = files.listStatus(new Path(place.url()));
        return Arrays.stream(found).map(status -> status.getPath().getName()).sorted().toList().equals(List.of("k", "l"));
      }),
      Operation.creating((files, place) -> {
        try (FSDataOutputStream out = files.create(new Path(place.url() + "k"))) {
          out.write(FaultCells.BYTES);
        }
        return true;
      }),
      Operation.moving("rename-copies", "copy", About.WRITE, FaultMatrixTest::rename),
      Operation.moving("rename-removes", "delete", About.REMOVAL, FaultMatrixTest::rename),
      Operation.removing((files, place) -> files.delete(new Path(place.url() + "k"), false)));

  private static boolean rename(FileSystem files, Place place) throws IOException {
    return files.rename(new Path(place.url() + "k"), new Path(place.url() + "to"));
  }

  @Test
  void every_fault_ends_in_an_exact_file_or_an_io_exception() throws Exception {
    List<String> failures = FaultCells.run(
        OPERATIONS,
        List.of("gs", "s3a"),
        (store, scheme) -> EmbeddedStore.open(scheme + "://lake/", store.configuration()),
        IOException.class::isInstance);
    assertEquals(List.of(), failures, () -> String.join("\n", failures));
  }
}
