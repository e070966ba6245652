package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.laneway.hadoop.FaultCells;
import dev.laneway.hadoop.FaultCells.About;
import dev.laneway.hadoop.FaultCells.Deed;
import dev.laneway.hadoop.FaultCells.Place;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.stream.StreamSupport;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;

/** The faults of the embedded store on Iceberg's face: files are exact, or an exception says why not that Iceberg's callers know. */
class FaultMatrixTest {
  /** Before what comes with the opening request. */
  private static final int FROM = 30_000;
  private static final int SOME = 20_000;

  enum What implements Deed<LanewayFileIO> {
    READ("get", About.RANGE) {
      @Override
      public boolean succeeds(LanewayFileIO io, Place place) throws IOException {
        try (SeekableInputStream in = io.newInputFile(place.url() + "k").newStream()) {
          return FaultCells.isRead(in.readAllBytes());
        }
      }
    },
    READ_RANGE("get", About.RANGE) {
      @Override
      public boolean succeeds(LanewayFileIO io, Place place) throws IOException {
        try (SeekableInputStream in = io.newInputFile(place.url() + "k").newStream()) {
          byte[] some = new byte[SOME];
          ((RangeReadable) in).readFully(FROM, some);
          return FaultCells.isRead(FROM, some, SOME);
        }
      }
    },
    LENGTH("head", About.HEADERS) {
      @Override
      public boolean succeeds(LanewayFileIO io, Place place) {
        return io.newInputFile(place.url() + "k").getLength() == FaultCells.BYTES.length;
      }
    },
    LIST("list", About.DOCUMENT) {
      @Override
      public boolean succeeds(LanewayFileIO io, Place place) {
        List<String> names = StreamSupport.stream(io.listPrefix(place.url()).spliterator(), false)
            .map(file -> file.location().substring(place.url().length()))
            .sorted()
            .toList();
        return names.equals(List.of("k", "l"));
      }
    },
    CREATE("put", About.WRITE) {
      @Override
      public void prepare(Place place) {}

      @Override
      public boolean succeeds(LanewayFileIO io, Place place) throws IOException {
        try (PositionOutputStream out = io.newOutputFile(place.url() + "k").create()) {
          out.write(FaultCells.BYTES);
        }
        return true;
      }

      @Override
      public boolean isLeftRight(Place place, boolean hasSucceeded) throws IOException {
        Boolean isWhole = place.isWhole("k");
        return isWhole == null ? !hasSucceeded : isWhole;
      }
    },
    DELETE("delete", About.REMOVAL) {
      @Override
      public boolean succeeds(LanewayFileIO io, Place place) {
        io.deleteFile(place.url() + "k");
        return true;
      }

      @Override
      public boolean isLeftRight(Place place, boolean hasSucceeded) throws IOException {
        Boolean isWhole = place.isWhole("k");
        return (isWhole == null || isWhole && !hasSucceeded) && place.isWhole("l") != null;
      }
    };

    private final String verb;
    private final About about;

    What(String verb, About about) {
      this.verb = verb;
      this.about = about;
    }

    @Override
    public String verb() {
      return verb;
    }

    @Override
    public About about() {
      return about;
    }

    @Override
    public void prepare(Place place) throws IOException {
      place.put("k");
      place.putBeside("l");
    }

    @Override
    public boolean isLeftRight(Place place, boolean hasSucceeded) throws IOException {
      return true;
    }
  }

  @Test
  void every_fault_ends_in_an_exact_file_or_an_exception_of_icebergs() throws Exception {
    List<String> failures = FaultCells.run(
        List.of(What.values()),
        List.of("gs", "s3"),
        (store, scheme) -> Catalogs.io(store),
        failure -> failure instanceof IOException || failure instanceof UncheckedIOException || failure instanceof ForbiddenException);
    assertEquals(List.of(), failures, () -> String.join("\n", failures));
  }
}
