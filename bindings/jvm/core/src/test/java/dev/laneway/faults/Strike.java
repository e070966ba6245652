package dev.laneway.faults;

import dev.laneway.Bucket;
import dev.laneway.CopyOptions;
import dev.laneway.Download;
import dev.laneway.GetOptions;
import dev.laneway.JobOptions;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import dev.laneway.ListOptions;
import dev.laneway.MultipartUpload;
import dev.laneway.ObjectMeta;
import dev.laneway.ObjectReader;
import dev.laneway.OpenOptions;
import dev.laneway.PutOptions;
import dev.laneway.Range;
import dev.laneway.WriterStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** An operation and the request that a fault hits, which is the operation's first request of this verb. */
enum Strike {
  GET("get", About.CONTENT) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      try (Download download = scene.of(bucket -> bucket.getAsync("k", GetOptions.NONE), bucket -> bucket.get("k"))) {
        return scene.isRead(download.bytes());
      }
    }
  },
  STREAM("get", About.CONTENT) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      try (Download download = scene.bucket().get("k")) {
        return scene.isRead(download.stream().readAllBytes());
      }
    }
  },
  READ_AT("get", About.RANGE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      try (ObjectReader reader = scene.bucket().open("k")) {
        ByteBuffer into = scene.isAsync() ? ByteBuffer.allocateDirect(900) : ByteBuffer.allocate(900);
        if (scene.isAsync()) {
          scene.wait(reader.readAtAsync(1000, into));
        } else {
          reader.readFully(1000, into);
        }
        return !into.hasRemaining() && scene.isRead(1000, into.flip());
      }
    }
  },
  READ_RANGES("get", About.RANGE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      List<Range> wanted = List.of(new Range(10, 800), new Range(4000, 1000));
      boolean isRight = true;
      try (ObjectReader reader = scene.bucket().open("k")) {
        List<CompletableFuture<ByteBuffer>> ranges = reader.readRanges(wanted, ByteBuffer::allocate);
        for (int nth = 0; nth < wanted.size(); nth++) {
          isRight &= scene.isRead((int) wanted.get(nth).position(), scene.wait(ranges.get(nth)));
        }
      }
      return isRight;
    }
  },
  OPEN("head", About.HEADERS) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      try (ObjectReader reader =
          scene.of(bucket -> bucket.openAsync("k", OpenOptions.NONE), bucket -> bucket.open("k"))) {
        return reader.size() == SMALL.length;
      }
    }
  },
  PUT("put", About.WRITE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      ByteBuffer bytes = ByteBuffer.wrap(SMALL);
      return SMALL.length
          == scene
              .of(bucket -> bucket.putAsync("k", bytes, PutOptions.NONE), bucket -> bucket.put("k", bytes, PutOptions.NONE))
              .size();
    }
  },
  WRITER("put", About.WRITE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      try (WriterStream stream = scene.bucket().writer("k", PutOptions.NONE).stream()) {
        stream.write(SMALL);
        stream.complete();
      }
      return true;
    }
  },
  MULTIPART_BEGIN("begin", About.BEGIN) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      return inParts(scene);
    }
  },
  MULTIPART_PART("part", About.PART) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      return inParts(scene);
    }
  },
  MULTIPART_COMPLETE("complete", About.WRITE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      return inParts(scene);
    }
  },
  HEAD("head", About.HEADERS) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      return scene.of(bucket -> bucket.headAsync("k"), bucket -> bucket.head("k")).size() == SMALL.length;
    }
  },
  LIST("list", About.DOCUMENT) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      try (Stream<ObjectMeta> listed = scene.bucket().list("")) {
        return listed.map(ObjectMeta::key).toList().equals(KEYS);
      }
    }
  },
  LIST_WITH_DELIMITER("list", About.DOCUMENT) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      return scene
          .of(bucket -> bucket.listWithDelimiterAsync("", ListOptions.NONE), bucket -> bucket.listWithDelimiter(""))
          .objects()
          .stream()
          .map(ObjectMeta::key)
          .toList()
          .equals(KEYS);
    }
  },
  DELETE("delete", About.REMOVAL) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      if (scene.isAsync()) {
        scene.wait(scene.bucket().deleteAsync("k"));
      } else {
        scene.bucket().delete("k");
      }
      return true;
    }
  },
  DELETE_ALL("delete-many", About.REMOVAL) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      Map<String, LanewayException> failed =
          scene.of(bucket -> bucket.deleteAllAsync(KEYS), bucket -> bucket.deleteAll(KEYS));
      for (LanewayException failure : failed.values()) {
        throw failure;
      }
      return true;
    }
  },
  COPY("copy", About.WRITE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      scene.of(bucket -> bucket.copyAsync("k", "to", CopyOptions.NONE), bucket -> bucket.copy("k", "to"));
      return true;
    }
  },
  RENAME("delete", About.REMOVAL) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      scene.of(
          bucket -> bucket.renameAsync("k", "to", CopyOptions.NONE), bucket -> bucket.rename("k", "to", CopyOptions.NONE));
      return true;
    }
  },
  COPY_DOWN("get", About.CONTENT) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      String into = scene.folder() + "/";
      scene.run(laneway -> laneway.copy(List.of(scene.bucket().url()), into, JobOptions.NONE.recursive().contents()));
      return true;
    }
  },
  SYNC_DOWN("list", About.DOCUMENT) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      scene.run(laneway -> laneway.sync(scene.bucket().url(), scene.folder().toString(), JobOptions.NONE));
      return true;
    }
  },
  SYNC_UP("put", About.WRITE) {
    @Override
    boolean succeeds(Scene scene) throws Exception {
      scene.run(laneway -> laneway.sync(scene.folder().toString(), scene.bucket().url(), JobOptions.NONE));
      return true;
    }
  };

  /** The subject of a request. */
  enum About {
    CONTENT,
    RANGE,
    DOCUMENT,
    HEADERS,
    WRITE,
    /** Begins an upload. Only the answer contains the upload's name. */
    BEGIN,
    PART,
    REMOVAL
  }

  static final byte[] SMALL = new byte[5000];
  static final List<String> KEYS = List.of("k", "l", "m");

  static {
    new Random(1).nextBytes(SMALL);
  }

  private final String verb;
  private final About about;

  Strike(String verb, About about) {
    this.verb = verb;
    this.about = about;
  }

  About about(String scheme) {
    return isMove(scheme) ? About.HEADERS : about;
  }

  String verb(String scheme) {
    return this == DELETE_ALL && scheme.equals("gs") ? "batch" : isMove(scheme) ? "head" : verb;
  }

  /** Returns whether GCS moves the object by one request. Before that, Laneway looks the object up. */
  private boolean isMove(String scheme) {
    return this == RENAME && scheme.equals("gs");
  }

  /** Returns the operation's own folder, in the bucket and on this machine. */
  String folder() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** Runs the operation, and returns whether its result is right. */
  abstract boolean succeeds(Scene scene) throws Exception;

  /** Returns whether the operation writes an object that didn't exist before. */
  private boolean writes() {
    return List.of("put", "begin", "part", "complete").contains(verb);
  }

  /** Stores the objects or files that the operation reads. */
  void prepare(Scene scene) throws Exception {
    for (String key : KEYS) {
      if (this == SYNC_UP) {
        Files.write(scene.folder().resolve(key), SMALL);
      } else if (!writes()) {
        scene.lay(key, SMALL);
      }
    }
  }

  /** Returns the mistake in the objects and files after the operation; {@code null} if there is none. */
  String left(Scene scene, boolean hasSucceeded) throws Exception {
    switch (this) {
      case PUT, WRITER, MULTIPART_BEGIN, MULTIPART_PART, MULTIPART_COMPLETE -> {
        return scene.holds("k", hasSucceeded, SMALL, null);
      }
      case DELETE, RENAME -> {
        String wrong = scene.holds("k", hasSucceeded, null, SMALL);
        return wrong == null && this == RENAME ? scene.holds("to", hasSucceeded, SMALL, null) : wrong;
      }
      case COPY -> {
        return scene.holds("to", hasSucceeded, SMALL, null);
      }
      case DELETE_ALL, SYNC_UP -> {
        for (String key : KEYS) {
          byte[] done = this == SYNC_UP ? SMALL : null;
          String wrong = scene.holds(key, hasSucceeded, done, this == SYNC_UP ? null : SMALL);
          if (wrong != null) {
            return wrong;
          }
        }
        return null;
      }
      case COPY_DOWN, SYNC_DOWN -> {
        List<String> names = new ArrayList<>();
        try (Stream<Path> files = Files.list(scene.folder())) {
          for (Path file : files.sorted().toList()) {
            names.add(file.getFileName().toString());
            if (!scene.isRead(Files.readAllBytes(file))) {
              return "the file " + file.getFileName() + " is another";
            }
          }
        }
        return hasSucceeded ? (names.equals(KEYS) ? null : names + " are there") : (KEYS.containsAll(names) ? null : names + " are left");
      }
      default -> {
        return null;
      }
    }
  }

  private static boolean inParts(Scene scene) throws Exception {
    ByteBuffer bytes = ByteBuffer.wrap(SMALL);
    MultipartUpload upload = scene.bucket().beginMultipart("k", PutOptions.NONE);
    try {
      String part = scene.isAsync() ? scene.wait(upload.uploadPartAsync(1, bytes)) : upload.uploadPart(1, bytes);
      return (scene.isAsync() ? scene.wait(upload.completeAsync(List.of(part))) : upload.complete(List.of(part))).size()
          == SMALL.length;
    } catch (LanewayException failure) {
      // Aborts the upload, as Hadoop's committers do. A completed upload no longer exists.
      try {
        upload.abort();
      } catch (LanewayException other) {
        failure.addSuppressed(other);
      }
      throw failure;
    }
  }
}
