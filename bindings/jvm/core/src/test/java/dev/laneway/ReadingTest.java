package dev.laneway;

import static dev.laneway.Serving.direct;
import static dev.laneway.Serving.noise;
import static dev.laneway.Serving.remaining;
import static dev.laneway.Serving.text;
import static dev.laneway.Serving.written;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Open objects are read at positions, in ranges and in order, into buffers of all kinds. */
class ReadingTest {
  private static final int SIZE = 3_000_000;

  private static Bucket with(Serving dialect, String key, byte[] bytes) throws Exception {
    Bucket bucket = dialect.bucket();
    bucket.put(key, ByteBuffer.wrap(bytes), PutOptions.NONE);
    return bucket;
  }

  private static byte[] part(byte[] bytes, int from, int to) {
    return Arrays.copyOfRange(bytes, from, to);
  }

  private static long requests() {
    return Serving.laneway().counters().requests();
  }

  @ParameterizedTest
  @EnumSource
  void reads_at_places_fill_buffers_of_all_kinds(Serving dialect) throws Exception {
    byte[] noise = noise(SIZE);
    Bucket bucket = with(dialect, "k", noise);
    try (ObjectReader reader = bucket.open("k")) {
      assertEquals(SIZE, reader.size());
      assertEquals(bucket.head("k"), reader.meta());
      List<IntFunction<ByteBuffer>> kinds =
          List.of(
              ByteBuffer::allocate,
              ByteBuffer::allocateDirect,
              length -> ByteBuffer.allocate(length + 7).position(7).slice(),
              length -> ByteBuffer.allocateDirect(length + 7).position(7).slice());
      for (IntFunction<ByteBuffer> kind : kinds) {
        ByteBuffer buffer = kind.apply(100_000);
        buffer.position(10).limit(90_010);
        assertEquals(90_000, reader.readAt(12_345, buffer));
        assertEquals(90_010, buffer.position());
        assertArrayEquals(part(noise, 12_345, 102_345), part(written(buffer), 10, 90_010));
        buffer.clear();
        assertEquals(5, reader.readAt(SIZE - 5, buffer), "the object ends");
        assertArrayEquals(part(noise, SIZE - 5, SIZE), written(buffer));
        assertEquals(-1, reader.readAt(SIZE, buffer));
        assertEquals(-1, reader.readAt(Long.MAX_VALUE, buffer));
        assertEquals(5, buffer.position());
        assertEquals(0, reader.readAt(0, buffer.duplicate().limit(5)));
        assertEquals(3, reader.readAtAsync(7, buffer.duplicate().limit(8)).join());
        assertThrows(EOFException.class, () -> reader.readFully(SIZE - 5, ByteBuffer.allocate(6)));
        assertThrows(ReadOnlyBufferException.class, () -> reader.readAt(0, buffer.asReadOnlyBuffer()));
      }
      assertThrows(IllegalArgumentException.class, () -> reader.readAt(-1, ByteBuffer.allocate(1)));
    }
  }

  @ParameterizedTest
  @EnumSource
  void a_long_read_goes_straight_into_its_buffer_by_several_requests(Serving dialect) throws Exception {
    byte[] noise = noise(40_000_000);
    Bucket bucket = with(dialect, "k", noise);
    try (ObjectReader reader = bucket.open("k", OpenOptions.NONE.footer(1_000))) {
      for (ByteBuffer buffer : List.of(ByteBuffer.allocateDirect(noise.length), ByteBuffer.allocate(noise.length))) {
        assertEquals(noise.length - 3, reader.readAt(3, buffer));
        assertArrayEquals(part(noise, 3, noise.length), written(buffer));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void of_what_is_read_in_order_the_beginning_comes_with_the_opening_request(Serving dialect) throws Exception {
    byte[] noise = noise(400_000);
    Bucket bucket = with(dialect, "k", noise);
    long before = requests();
    try (ObjectReader reader = bucket.open("k", OpenOptions.NONE.inOrder())) {
      assertArrayEquals(noise, reader.stream().readAllBytes());
      ByteBuffer buffer = ByteBuffer.allocate(noise.length);
      reader.readFully(0, buffer);
      assertArrayEquals(noise, written(buffer));
      assertEquals(before + 1, requests());
    }
  }

  @ParameterizedTest
  @EnumSource
  void of_what_is_known_nothing_is_asked_and_the_footer_costs_one_request(Serving dialect) throws Exception {
    byte[] noise = noise(SIZE);
    Bucket bucket = with(dialect, "k", noise);
    ObjectMeta listed = bucket.listWithDelimiter("").objects().get(0);
    long before = requests();
    try (ObjectReader reader = bucket.open("k", OpenOptions.NONE.known(listed))) {
      assertEquals(before, requests());
      assertEquals(SIZE, reader.size());
      ByteBuffer buffer = ByteBuffer.allocateDirect(1000);
      reader.readFully(1000, buffer);
      assertArrayEquals(part(noise, 1000, 2000), written(buffer));
      assertEquals(before + 1, requests());
    }
    before = requests();
    OpenOptions footed = OpenOptions.NONE.known(SIZE, listed.version()).footer(10_000);
    try (ObjectReader reader = bucket.open("k", footed)) {
      for (ByteBuffer buffer : List.of(ByteBuffer.allocateDirect(8_000), ByteBuffer.allocate(8_000))) {
        reader.readFully(SIZE - 9_000, buffer);
        assertArrayEquals(part(noise, SIZE - 9_000, SIZE - 1_000), written(buffer));
      }
      List<CompletableFuture<ByteBuffer>> ranges =
          reader.readRanges(List.of(new Range(SIZE - 8, 8), new Range(SIZE - 100, 50)), ByteBuffer::allocateDirect);
      assertArrayEquals(part(noise, SIZE - 8, SIZE), remaining(ranges.get(0).join()));
      assertArrayEquals(part(noise, SIZE - 100, SIZE - 50), remaining(ranges.get(1).join()));
      assertEquals(before + 1, requests());
      ByteBuffer across = ByteBuffer.allocateDirect(20_000);
      reader.readFully(SIZE - 20_000, across);
      assertArrayEquals(part(noise, SIZE - 20_000, SIZE), written(across));
      List<CompletableFuture<ByteBuffer>> both =
          reader.readRanges(List.of(new Range(0, 5), new Range(SIZE - 8, 8), new Range(9, 2)), ByteBuffer::allocate);
      assertArrayEquals(part(noise, 0, 5), remaining(both.get(0).join()));
      assertArrayEquals(part(noise, SIZE - 8, SIZE), remaining(both.get(1).join()));
      assertArrayEquals(part(noise, 9, 11), remaining(both.get(2).join()));
    }
  }

  @ParameterizedTest
  @EnumSource
  void all_reads_are_of_one_version(Serving dialect) throws Exception {
    Bucket bucket = with(dialect, "k", noise(SIZE));
    ObjectMeta old = bucket.head("k");
    try (ObjectReader opened = bucket.open("k");
        ObjectReader known = bucket.open("k", OpenOptions.NONE.known(old))) {
      bucket.put("k", ByteBuffer.wrap(noise(SIZE + 1)), PutOptions.NONE);
      for (ObjectReader reader : List.of(opened, known)) {
        for (ByteBuffer buffer : List.of(ByteBuffer.allocate(10), ByteBuffer.allocateDirect(10))) {
          LanewayException replaced = assertThrows(LanewayException.class, () -> reader.readAt(0, buffer));
          assertEquals(ErrorKind.PRECONDITION, replaced.kind());
          assertEquals(0, buffer.position());
        }
        CompletableFuture<ByteBuffer> range =
            reader.readRanges(List.of(new Range(0, 9)), ByteBuffer::allocate).get(0);
        CompletionException failure = assertThrows(CompletionException.class, range::join);
        assertEquals(ErrorKind.PRECONDITION, ((LanewayException) failure.getCause()).kind());
      }
    }
    LanewayException refused =
        assertThrows(LanewayException.class, () -> bucket.open("k", OpenOptions.NONE.ifVersion(old.version())));
    assertEquals(ErrorKind.PRECONDITION, refused.kind());
  }

  @ParameterizedTest
  @EnumSource
  void ranges_come_each_into_its_own_buffer(Serving dialect) throws Exception {
    byte[] noise = noise(SIZE);
    Bucket bucket = with(dialect, "k", noise);
    List<Range> ranges =
        List.of(
            new Range(4, 60_000),
            new Range(1_000_000, 250_000),
            new Range(1_100_000, 10),
            new Range(4, 60_000),
            new Range(SIZE, 0),
            new Range(2_999_000, 1_000));
    try (ObjectReader reader = bucket.open("k")) {
      List<IntFunction<ByteBuffer>> kinds =
          List.of(ByteBuffer::allocate, ByteBuffer::allocateDirect, length -> ByteBuffer.allocateDirect(2 * length + 1));
      for (IntFunction<ByteBuffer> allocate : kinds) {
        List<ByteBuffer> made = new ArrayList<>();
        List<CompletableFuture<ByteBuffer>> futures =
            reader.readRanges(
                ranges,
                length -> {
                  made.add(allocate.apply(length));
                  return made.get(made.size() - 1);
                });
        for (int at = 0; at < ranges.size(); at++) {
          Range range = ranges.get(at);
          ByteBuffer buffer = futures.get(at).join();
          assertSame(made.get(at), buffer);
          assertEquals(0, buffer.position());
          assertArrayEquals(part(noise, (int) range.position(), (int) range.end()), remaining(buffer));
        }
      }
      assertEquals(List.of(), reader.readRanges(List.of(), ByteBuffer::allocate));
      assertThrows(EOFException.class, () -> reader.readRanges(List.of(new Range(SIZE - 1, 2)), ByteBuffer::allocate));
      assertThrows(IllegalArgumentException.class, () -> new Range(-1, 2));
      assertThrows(
          IllegalArgumentException.class,
          () -> reader.readRanges(List.of(new Range(0, 2)), length -> ByteBuffer.allocate(1)));
    }
  }

  @ParameterizedTest
  @EnumSource
  void a_channel_reads_in_order_and_goes_elsewhere(Serving dialect) throws Exception {
    byte[] noise = noise(SIZE);
    Bucket bucket = with(dialect, "k", noise);
    for (ByteBuffer buffer : List.of(ByteBuffer.allocate(70_000), ByteBuffer.allocateDirect(70_000))) {
      try (ObjectReader reader = bucket.open("k")) {
        int at = 0;
        for (int read = reader.read(buffer); read >= 0; read = reader.read(buffer)) {
          assertTrue(read > 0);
          assertArrayEquals(part(noise, at, at + read), written(buffer));
          at += read;
          assertEquals(at, reader.position());
          buffer.clear();
        }
        assertEquals(SIZE, at);
        assertEquals(-1, reader.read(buffer));
        assertEquals(0, reader.read(buffer.duplicate().limit(0)));
        reader.position(1_500_000);
        buffer.limit(9);
        while (buffer.hasRemaining()) {
          reader.read(buffer);
        }
        assertArrayEquals(part(noise, 1_500_000, 1_500_009), written(buffer));
        buffer.clear();
        assertEquals(-1, reader.position(SIZE + 5).read(buffer));
      }
    }
  }

  @Test
  void what_is_closed_is_used_no_more() throws Exception {
    Bucket bucket = with(Serving.S3, "k", text("bytes"));
    ObjectReader reader = bucket.open("k");
    reader.close();
    reader.close();
    assertFalse(reader.isOpen());
    assertThrows(ClosedChannelException.class, () -> reader.readAt(0, ByteBuffer.allocate(1)));
    assertThrows(ClosedChannelException.class, () -> reader.read(ByteBuffer.allocate(1)));
    assertThrows(ClosedChannelException.class, () -> reader.readRanges(List.of(new Range(0, 1)), ByteBuffer::allocate));
    Download download = bucket.get("k");
    download.close();
    assertThrows(ClosedChannelException.class, () -> download.read(ByteBuffer.allocate(1)));
    Laneway laneway = Serving.settings().build();
    Bucket open = Serving.S3.bucket(laneway);
    laneway.close();
    assertEquals(ErrorKind.USAGE, assertThrows(LanewayException.class, () -> Serving.S3.bucket(laneway)).kind());
    open.put("k", ByteBuffer.wrap(text("goes on")), PutOptions.NONE);
  }
}
