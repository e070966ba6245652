package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.laneway.hadoop.FaultCells;
import dev.laneway.hadoop.FaultCells.About;
import dev.laneway.hadoop.FaultCells.Operation;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.stream.StreamSupport;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;

/** Tests Iceberg's files with the faults of the embedded store: files are exact, or an exception states the reason. */
class FaultMatrixTest {
  /** A position before the bytes that come with the opening request. */
  private static final int FROM = 30_000;
  private static final int SOME = 20_000;

  private static final List<Operation<LanewayFileIO>> OPERATIONS = List.of(
      Operation.reading("read", "get", About.RANGE, (io, place) -> {
        try (SeekableInputStream in = io.newInputFile(place.url() + "k").newStream()) {
          return FaultCells.isRead(in.readAllBytes());
        }
      }),
      Operation.reading("read-range", "get", About.RANGE, (io, place) -> {
        try (SeekableInputStream in = io.newInputFile(place.url() + "k").newStream()) {
          byte[] some = new byte[SOME];
          ((RangeReadable) in).readFully(FROM, some);
          return FaultCells.isRead(FROM, some, SOME);
        }
      }),
      Operation.reading("length", "head", About.HEADERS, (io, place) ->
          io.newInputFile(place.url() + "k").getLength() == FaultCells.BYTES.length),
      Operation.reading("list", "list", About.DOCUMENT, (io, place) -> {
        List<String> names = StreamSupport.stream(io.listPrefix(place.url()).spliterator(), false)
            .map(file -> file.location().substring(place.url().length()))
            .sorted()
            .toList();
        return names.equals(List.of("k", "l"));
      }),
      Operation.creating((io, place) -> {
        try (PositionOutputStream out = io.newOutputFile(place.url() + "k").create()) {
          out.write(FaultCells.BYTES);
        }
        return true;
      }),
      Operation.removing((io, place) -> {
        io.deleteFile(place.url() + "k");
        return true;
      }));

  @Test
  void every_fault_ends_in_an_exact_file_or_an_exception_of_icebergs() throws Exception {
    List<String> failures = FaultCells.run(
        OPERATIONS,
        List.of("gs", "s3"),
        (store, scheme) -> Catalogs.io(store),
        failure -> failure instanceof IOException || failure instanceof UncheckedIOException || failure instanceof ForbiddenException);
    assertEquals(List.of(), failures, () -> String.join("\n", failures));
  }
}
