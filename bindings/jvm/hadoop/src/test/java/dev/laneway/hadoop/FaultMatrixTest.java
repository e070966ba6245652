package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.laneway.hadoop.FaultCells.About;
import dev.laneway.hadoop.FaultCells.Deed;
import dev.laneway.hadoop.FaultCells.Place;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** The faults of the embedded store on Hadoop's face: files are exact, or an IOException says why not. */
class FaultMatrixTest {
  /** Behind what comes with the opening request. */
  private static final int FROM = 570_000;
  private static final int SOME = 20_000;

  enum What implements Deed<FileSystem> {
    READ("get", About.RANGE) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        try (FSDataInputStream in = files.open(new Path(place.url() + "k"))) {
          return FaultCells.isRead(in.readAllBytes());
        }
      }
    },
    READ_RANGE("get", About.RANGE) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        try (FSDataInputStream in = files.open(new Path(place.url() + "k"))) {
          byte[] some = new byte[SOME];
          in.readFully(FROM, some);
          return FaultCells.isRead(FROM, some, SOME);
        }
      }
    },
    READ_VECTORED("get", About.RANGE) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws Exception {
        try (FSDataInputStream in = files.open(new Path(place.url() + "k"))) {
          List<FileRange> ranges = List.of(FileRange.createFileRange(FROM, SOME), FileRange.createFileRange(FROM + SOME + 9, 100));
          IntFunction<ByteBuffer> buffers = ByteBuffer::allocate;
          in.readVectored(ranges, buffers);
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
      }
    },
    STATUS("head", About.HEADERS) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        FileStatus status = files.getFileStatus(new Path(place.url() + "k"));
        return status.isFile() && status.getLen() == FaultCells.BYTES.length;
      }
    },
    LIST("list", About.DOCUMENT) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        List<String> names =
            Arrays.stream(files.listStatus(new Path(place.url()))).map(status -> status.getPath().getName()).sorted().toList();
        return names.equals(List.of("k", "l"));
      }
    },
    CREATE("put", About.WRITE) {
      @Override
      public void prepare(Place place) {}

      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        try (FSDataOutputStream out = files.create(new Path(place.url() + "k"))) {
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
    RENAME_COPIES("copy", About.WRITE) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        return files.rename(new Path(place.url() + "k"), new Path(place.url() + "to"));
      }

      @Override
      public boolean isLeftRight(Place place, boolean hasSucceeded) throws IOException {
        return isMovedOrThere(place, hasSucceeded);
      }
    },
    RENAME_REMOVES("delete", About.REMOVAL) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        return files.rename(new Path(place.url() + "k"), new Path(place.url() + "to"));
      }

      @Override
      public boolean isLeftRight(Place place, boolean hasSucceeded) throws IOException {
        return isMovedOrThere(place, hasSucceeded);
      }
    },
    DELETE("delete", About.REMOVAL) {
      @Override
      public boolean succeeds(FileSystem files, Place place) throws IOException {
        return files.delete(new Path(place.url() + "k"), false);
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

    /** The source is there until its copy is, and then it may be. */
    private static boolean isMovedOrThere(Place place, boolean hasSucceeded) throws IOException {
      Boolean source = place.isWhole("k");
      Boolean destination = place.isWhole("to");
      boolean isThere = Boolean.TRUE.equals(source) || Boolean.TRUE.equals(destination);
      boolean areWhole = !Boolean.FALSE.equals(source) && !Boolean.FALSE.equals(destination);
      return isThere && areWhole && (!hasSucceeded || source == null);
    }
  }

  @Test
  void every_fault_ends_in_an_exact_file_or_an_io_exception() throws Exception {
    List<String> failures = FaultCells.run(
        List.of(What.values()),
        List.of("gs", "s3a"),
        (store, scheme) -> EmbeddedStore.open(scheme + "://lake/", store.configuration()),
        IOException.class::isInstance);
    assertEquals(List.of(), failures, () -> String.join("\n", failures));
  }
}
