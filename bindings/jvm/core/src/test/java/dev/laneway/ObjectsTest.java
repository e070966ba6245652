package dev.laneway;

import static dev.laneway.Serving.direct;
import static dev.laneway.Serving.noise;
import static dev.laneway.Serving.text;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Objects are written, found, listed, copied and removed, in both dialects. */
class ObjectsTest {
  private static ErrorKind kind(org.junit.jupiter.api.function.Executable call) {
    return assertThrows(LanewayException.class, call).kind();
  }

  private static ByteBuffer bytes(String text) {
    return ByteBuffer.wrap(text(text));
  }

  @ParameterizedTest
  @EnumSource
  void what_is_put_comes_back(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    PutOptions options = PutOptions.NONE.contentType("text/x-notes").metadata("author", "me").cacheControl("no-store");
    ByteBuffer buffer = direct(noise(100_000));
    Written written = bucket.put("notes é\u2028.txt", buffer, options);
    assertEquals(100_000, written.size());
    assertEquals(100_000, buffer.remaining(), "its position doesn't change");
    ObjectMeta meta = bucket.head("notes é\u2028.txt");
    assertEquals("notes é\u2028.txt", meta.key());
    assertEquals(written.version(), meta.version());
    assertEquals(100_000, meta.size());
    assertEquals("text/x-notes", meta.contentType());
    assertEquals("no-store", meta.cacheControl());
    assertEquals(Map.of("author", "me"), meta.metadata());
    assertNotNull(meta.updated());
    try (Download download = bucket.get("notes é\u2028.txt")) {
      assertEquals(meta.version(), download.meta().version());
      assertArrayEquals(noise(100_000), download.bytes());
    }
  }

  @ParameterizedTest
  @EnumSource
  void buffers_of_all_kinds_are_put(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(5000);
    ByteBuffer middle = ByteBuffer.wrap(noise).position(10).slice().limit(4000);
    for (ByteBuffer buffer :
        List.of(middle, direct(noise).position(10).limit(4010), middle.asReadOnlyBuffer(), direct(noise).position(10).slice().limit(4000).asReadOnlyBuffer())) {
      bucket.put("k", buffer, PutOptions.NONE);
      byte[] expected = new byte[4000];
      System.arraycopy(noise, 10, expected, 0, 4000);
      assertArrayEquals(expected, bucket.get("k").bytes());
    }
    bucket.put("empty", ByteBuffer.allocateDirect(0), PutOptions.NONE);
    assertArrayEquals(new byte[0], bucket.get("empty").bytes());
  }

  @ParameterizedTest
  @EnumSource
  void a_large_object_goes_in_parts_out_of_its_buffer(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(40_000_001);
    assertEquals(noise.length, bucket.put("large", direct(noise), PutOptions.NONE).size());
    assertArrayEquals(noise, bucket.get("large").bytes());
  }

  @ParameterizedTest
  @EnumSource
  void conditions_are_kept(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    Written first = bucket.put("k", bytes("1"), PutOptions.NONE.ifAbsent());
    assertEquals(ErrorKind.ALREADY_EXISTS, kind(() -> bucket.put("k", bytes("2"), PutOptions.NONE.ifAbsent())));
    bucket.put("k", bytes("22"), PutOptions.NONE.ifVersion(first.version()));
    LanewayException late =
        assertThrows(
            LanewayException.class, () -> bucket.put("k", bytes("333"), PutOptions.NONE.ifVersion(first.version())));
    assertEquals(ErrorKind.PRECONDITION, late.kind());
    assertTrue(late.url().startsWith(bucket.url()), late.url());
    assertEquals("ObjectsTest", simpleName(late), "it tells of who waited");
    assertEquals(ErrorKind.PRECONDITION, kind(() -> bucket.get("k", GetOptions.NONE.ifVersion(first.version()))));
    String now = bucket.head("k").version();
    assertEquals(ErrorKind.NOT_MODIFIED, kind(() -> bucket.get("k", GetOptions.NONE.unlessVersion(now))));
    assertEquals(ErrorKind.PRECONDITION, kind(() -> bucket.delete("k", first.version())));
    bucket.delete("k", now);
    LanewayException gone = assertThrows(LanewayException.class, () -> bucket.head("k"));
    assertTrue(gone.isNotFound());
    assertEquals(404, gone.status());
    assertFalse(gone.isRetryable());
  }

  private static String simpleName(Throwable failure) {
    for (StackTraceElement element : failure.getStackTrace()) {
      if (element.getClassName().startsWith(ObjectsTest.class.getName())) {
        return "ObjectsTest";
      }
    }
    return List.of(failure.getStackTrace()).toString();
  }

  @ParameterizedTest
  @EnumSource
  void parts_of_objects_are_read(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    bucket.put("k", bytes("0123456789"), PutOptions.NONE);
    assertArrayEquals(text("234"), bucket.get("k", GetOptions.NONE.range(2, 5)).bytes());
    assertArrayEquals(text("789"), bucket.get("k", GetOptions.NONE.last(3)).bytes());
    try (Download rest = bucket.get("k", GetOptions.NONE.from(6))) {
      assertEquals(6, rest.start());
      assertEquals(10, rest.end());
      assertArrayEquals(text("6789"), rest.stream().readAllBytes());
    }
    assertEquals(ErrorKind.INVALID_RANGE, kind(() -> bucket.get("k", GetOptions.NONE.from(11))));
  }

  @ParameterizedTest
  @EnumSource
  void listings_are_streams(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    List<CompletableFuture<Written>> puts = new ArrayList<>();
    for (int number = 0; number < 1200; number++) {
      puts.add(bucket.putAsync(String.format("a/%04d", number), bytes("x"), PutOptions.NONE));
    }
    puts.forEach(CompletableFuture::join);
    bucket.put("b", bytes("yy"), PutOptions.NONE);
    try (Stream<ObjectMeta> all = bucket.list("")) {
      List<ObjectMeta> metas = all.toList();
      assertEquals(1201, metas.size());
      assertEquals("a/0000", metas.get(0).key());
      assertEquals("a/1199", metas.get(1199).key());
      assertEquals(bucket.head("b").version(), metas.get(1200).version());
    }
    try (Stream<ObjectMeta> some = bucket.list("a/", ListOptions.NONE.startAfter("a/1197"))) {
      assertEquals(List.of("a/1198", "a/1199"), some.map(ObjectMeta::key).toList());
    }
    long before = Serving.laneway().counters().requests();
    try (Stream<ObjectMeta> few = bucket.list("a/", ListOptions.NONE.limit(3))) {
      assertEquals(List.of("a/0000", "a/0001", "a/0002"), few.map(ObjectMeta::key).toList());
    }
    assertEquals(before + 1, Serving.laneway().counters().requests(), "no more than that takes");
    Listing below = bucket.listWithDelimiter("");
    assertEquals(List.of("a/"), below.prefixes());
    assertEquals(List.of("b"), below.objects().stream().map(ObjectMeta::key).toList());
    assertEquals(1, bucket.listWithDelimiter("a/", ListOptions.NONE.limit(1)).objects().size());
    assertTrue(bucket.listWithDelimiter("nothing/").objects().isEmpty());
    try (Stream<ObjectMeta> first = bucket.list("a/")) {
      assertEquals("a/0000", first.findFirst().orElseThrow().key(), "and the rest is left");
    }
  }

  @Test
  void what_fails_of_a_listing_is_said_by_its_stream() throws Exception {
    Bucket nowhere = Serving.laneway().bucket("s3://there-is-no-such-bucket/");
    try (Stream<ObjectMeta> listed = nowhere.list("")) {
      UncheckedIOException failure = assertThrows(UncheckedIOException.class, listed::toList);
      assertEquals(ErrorKind.NOT_FOUND, ((LanewayException) failure.getCause()).kind());
    }
  }

  @ParameterizedTest
  @EnumSource
  void many_are_removed_and_each_failure_is_told(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    for (String key : List.of("a", "b", "c")) {
      bucket.put(key, bytes(key), PutOptions.NONE);
    }
    Map<String, LanewayException> failures = bucket.deleteAll(List.of("a", "nothing", "b"));
    if (dialect == Serving.GCS) {
      assertEquals(List.of("nothing"), List.copyOf(failures.keySet()));
      assertTrue(failures.get("nothing").isNotFound());
    } else {
      assertEquals(Map.of(), failures);
    }
    assertEquals(List.of("c"), bucket.listWithDelimiter("").objects().stream().map(ObjectMeta::key).toList());
    assertEquals(Map.of(), bucket.deleteAll(List.of()));
  }

  @ParameterizedTest
  @EnumSource
  void objects_are_copied_and_renamed(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    Bucket other = dialect.bucket();
    bucket.put("a", bytes("bytes"), PutOptions.NONE.metadata("k", "v"));
    bucket.copy("a", "b");
    assertEquals(ErrorKind.ALREADY_EXISTS, kind(() -> bucket.copy("a", "b", CopyOptions.NONE.ifAbsent())));
    assertEquals(ErrorKind.ALREADY_EXISTS, kind(() -> bucket.rename("a", "b", CopyOptions.NONE.ifAbsent())));
    bucket.rename("b", "c", CopyOptions.NONE.into(other));
    assertTrue(assertThrows(LanewayException.class, () -> bucket.head("b")).isNotFound());
    assertEquals(Map.of("k", "v"), other.head("c").metadata());
  }

  @ParameterizedTest
  @EnumSource
  void two_conditions_are_refused(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    String version = bucket.put("k", bytes("1"), PutOptions.NONE).version();
    for (PutOptions both :
        List.of(PutOptions.NONE.ifAbsent().ifVersion(version), PutOptions.NONE.ifVersion(version).ifAbsent())) {
      LanewayException refused = assertThrows(LanewayException.class, () -> bucket.put("k", bytes("22"), both));
      assertEquals(ErrorKind.USAGE, refused.kind());
      assertEquals(
          "PutOptions.ifAbsent and PutOptions.ifVersion cannot be combined: a write has one condition",
          refused.getMessage());
      assertEquals(ErrorKind.USAGE, kind(() -> bucket.writer("k", both)));
      assertEquals(ErrorKind.USAGE, kind(() -> bucket.copy("k", "l", CopyOptions.NONE.put(both))));
    }
    assertEquals(1, bucket.head("k").size());
    ErrorKind missing = dialect == Serving.GCS ? ErrorKind.PRECONDITION : ErrorKind.NOT_FOUND;
    assertEquals(missing, kind(() -> bucket.put("missing", bytes("1"), PutOptions.NONE.ifVersion(version))));
  }

  @ParameterizedTest
  @EnumSource
  void a_compressing_stream_completes_its_object_or_leaves_none(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    try (WriterStream out = bucket.writer("whole.gz", PutOptions.NONE).stream();
        GZIPOutputStream gz = new GZIPOutputStream(out)) {
      gz.write(text("bytes"));
      gz.finish();
      out.complete();
    }
    try (Download download = bucket.get("whole.gz")) {
      assertArrayEquals(text("bytes"), new GZIPInputStream(download.stream()).readAllBytes());
    }
    assertThrows(
        IllegalStateException.class,
        () -> {
          try (WriterStream out = bucket.writer("half.gz", PutOptions.NONE).stream();
              GZIPOutputStream gz = new GZIPOutputStream(out)) {
            gz.write(text("bytes"));
            throw new IllegalStateException();
          }
        });
    assertEquals(ErrorKind.NOT_FOUND, kind(() -> bucket.head("half.gz")));
  }

  @ParameterizedTest
  @EnumSource
  void a_writer_leaves_all_or_nothing(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(18 << 20);
    try (ObjectWriter writer = bucket.writer("direct", PutOptions.NONE.contentType("text/x-w"))) {
      ByteBuffer buffer = direct(noise);
      while (buffer.hasRemaining()) {
        ByteBuffer some = buffer.slice().limit(Math.min(buffer.remaining(), 3_000_001));
        int count = writer.write(some);
        assertEquals(0, some.remaining());
        buffer.position(buffer.position() + count);
      }
      assertEquals(noise.length, writer.finish().size());
    }
    assertArrayEquals(noise, bucket.get("direct").bytes());
    assertEquals("text/x-w", bucket.head("direct").contentType());
    try (WriterStream stream = bucket.writer("stream", PutOptions.NONE).stream()) {
      stream.write(noise);
      stream.write(7);
      assertEquals(noise.length + 1, stream.complete().size());
      assertThrows(IOException.class, () -> stream.write(7));
    }
    assertEquals(noise.length + 1, bucket.head("stream").size());
    try (OutputStream stream = bucket.writer("closed", PutOptions.NONE).closingStream()) {
      stream.write(7);
    }
    assertEquals(1, bucket.head("closed").size());
    try (ObjectWriter writer = bucket.writer("given up", PutOptions.NONE)) {
      writer.write(direct(noise));
    }
    assertTrue(assertThrows(LanewayException.class, () -> bucket.head("given up")).isNotFound());
    assertEquals(List.of(), bucket.multipartUploads(""), "nothing is left of it");
    bucket.put("there", bytes("1"), PutOptions.NONE);
    ObjectWriter late = bucket.writer("there", PutOptions.NONE.ifAbsent());
    late.write(bytes("2"));
    assertEquals(ErrorKind.ALREADY_EXISTS, kind(late::finish));
  }

  @ParameterizedTest
  @EnumSource
  void an_exception_that_leaves_a_stream_publishes_nothing(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    bucket.put("k", bytes("before"), PutOptions.NONE);
    IllegalStateException stop = new IllegalStateException("stop");
    IllegalStateException thrown =
        assertThrows(
            IllegalStateException.class,
            () -> {
              try (WriterStream stream = bucket.writer("k", PutOptions.NONE).stream()) {
                stream.write(noise(9_000_000));
                throw stop;
              }
            });
    assertEquals(0, thrown.getSuppressed().length);
    assertEquals(6, bucket.head("k").size());
    assertEquals(List.of(), bucket.multipartUploads(""));
  }

  @ParameterizedTest
  @EnumSource
  void the_bytes_of_an_object_are_held_once(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(16_000_000);
    bucket.put("k", ByteBuffer.wrap(noise), PutOptions.NONE);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (Download download = bucket.get("k")) {
      long before = threads.getCurrentThreadAllocatedBytes();
      byte[] bytes = download.bytes();
      long taken = threads.getCurrentThreadAllocatedBytes() - before;
      assertTrue(taken < noise.length * 3 / 2, () -> taken + " bytes");
      assertArrayEquals(noise, bytes);
    }
  }

  @Test
  void what_is_longer_than_was_told_is_given_room_up_to_the_largest_array() throws Exception {
    assertEquals(64 << 10, Download.larger("s3://lake/k", 0));
    assertEquals(2_000_000_000, Download.larger("s3://lake/k", 1_000_000_000));
    assertEquals(Download.ARRAY_BYTES_MAX, Download.larger("s3://lake/k", (1 << 30) + 1));
    assertEquals(ErrorKind.USAGE, kind(() -> Download.larger("s3://lake/k", Download.ARRAY_BYTES_MAX)));
  }

  @ParameterizedTest
  @EnumSource
  void an_upload_in_parts_goes_on_elsewhere(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise((5 << 20) + 8);
    MultipartUpload begun = bucket.beginMultipart("jobs/table", PutOptions.NONE.contentType("text/x-t"));
    String last = begun.uploadPart(2, ByteBuffer.wrap(noise, 5 << 20, 8));
    // As another process could, continue with only the key, the upload's id and the text of the last part.
    MultipartUpload upload = bucket.multipart("jobs/table", begun.id());
    String first = upload.uploadPart(1, direct(noise).limit(5 << 20));
    assertTrue(assertThrows(LanewayException.class, () -> bucket.head("jobs/table")).isNotFound(), "not yet");
    assertEquals(noise.length, upload.complete(List.of(last, first)).size());
    assertArrayEquals(noise, bucket.get("jobs/table").bytes());
    assertEquals("text/x-t", bucket.head("jobs/table").contentType());
    assertTrue(assertThrows(LanewayException.class, upload::abort).isNotFound());
    assertEquals(ErrorKind.USAGE, kind(() -> upload.uploadPart(0, bytes("x"))));
    assertEquals(ErrorKind.USAGE, kind(() -> upload.complete(List.of("no part"))));
    assertEquals(ErrorKind.USAGE, kind(() -> bucket.multipart("k", "no id").abort()));
  }

  @ParameterizedTest
  @EnumSource
  void uploads_that_somebody_left_are_found_and_completed_or_given_up(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    MultipartUpload one = bucket.beginMultipart("jobs/1", PutOptions.NONE);
    String part = one.uploadPart(1, bytes("left"));
    bucket.beginMultipart("jobs/2", PutOptions.NONE);
    bucket.beginMultipart("other", PutOptions.NONE);
    List<MultipartUpload> left = bucket.multipartUploads("jobs/");
    assertEquals(List.of("jobs/1", "jobs/2"), left.stream().map(MultipartUpload::key).toList());
    assertEquals(one.id(), left.get(0).id());
    left.get(0).complete(List.of(part));
    left.get(1).abort();
    assertEquals(List.of("other"), bucket.multipartUploads("").stream().map(MultipartUpload::key).toList());
    assertArrayEquals(text("left"), bucket.get("jobs/1").bytes());
  }

  @Test
  void mistakes_are_told_before_anything_is_sent() throws Exception {
    long before = Serving.laneway().counters().requests();
    assertEquals(ErrorKind.USAGE, kind(() -> Serving.laneway().bucket("lake")));
    Bucket bucket = Serving.S3.bucket();
    assertThrows(IllegalArgumentException.class, () -> bucket.head("half \ud800"), "no character");
    assertEquals(ErrorKind.USAGE, kind(() -> Serving.GCS.bucket().put("k", bytes("x"), PutOptions.NONE.ifVersion("no number"))));
    assertEquals(before, Serving.laneway().counters().requests());
  }

  @Test
  void futures_tell_failures_and_may_be_waited_for_by_what_depends_on_them() throws Exception {
    Bucket bucket = Serving.S3.bucket();
    CompletionException failure = assertThrows(CompletionException.class, () -> bucket.headAsync("nothing").join());
    assertEquals(ErrorKind.NOT_FOUND, ((LanewayException) failure.getCause()).kind());
    // The dependent stage blocks until another call ends. That call must not need the thread on which the stage runs.
    long size =
        bucket
            .putAsync("k", bytes("12345"), PutOptions.NONE)
            .thenApply(
                written -> {
                  try {
                    return bucket.head("k").size();
                  } catch (IOException unexpected) {
                    throw new UncheckedIOException(unexpected);
                  }
                })
            .join();
    assertEquals(5, size);
  }
}
