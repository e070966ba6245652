package dev.laneway;

import static dev.laneway.Serving.noise;
import static dev.laneway.Serving.text;
import static dev.laneway.Serving.until;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A caller that cancels a call gets its buffer back, and the call's work ends. Without the cancelling, the reads of
 * these tests would never end.
 */
@Timeout(60)
class CancellingTest {
  private static final int SIZE = 400_000;

  private interface Read {
    void of(ObjectReader reader) throws IOException;
  }

  private static ObjectReader held(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    bucket.put(Serving.HELD, ByteBuffer.wrap(noise(SIZE)), PutOptions.NONE);
    return bucket.open(Serving.HELD);
  }

  private static long received() {
    return Serving.laneway().counters().bytesReceived();
  }

  /** Waits until a read has received its first bytes. */
  private static void untilBegun(long before) throws InterruptedException {
    until(() -> received() >= before + 1024);
  }

  /** Begins a read on another thread, interrupts it midway, and returns its exception. */
  private static Throwable interrupted(ObjectReader reader, Read read) throws Exception {
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    AtomicReference<Boolean> wasSet = new AtomicReference<>();
    long before = received();
    Thread thread =
        new Thread(
            () -> {
              try {
                read.of(reader);
              } catch (Throwable failure) {
                thrown.set(failure);
              }
              wasSet.set(Thread.currentThread().isInterrupted());
            });
    thread.start();
    untilBegun(before);
    thread.interrupt();
    thread.join();
    assertTrue(wasSet.get(), "the thread stays interrupted");
    return thrown.get();
  }

  @ParameterizedTest
  @EnumSource
  void an_interrupt_ends_every_kind_of_read(Serving dialect) throws Exception {
    try (ObjectReader reader = held(dialect)) {
      List<Read> reads =
          List.of(
              opened -> opened.readAt(0, ByteBuffer.allocate(SIZE)),
              opened -> opened.readAt(0, ByteBuffer.allocateDirect(SIZE)),
              opened -> opened.read(ByteBuffer.allocateDirect(SIZE)));
      for (Read read : reads) {
        assertInstanceOf(InterruptedIOException.class, interrupted(reader, read));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void a_thread_that_is_interrupted_before_begins_nothing_for_long(Serving dialect) throws Exception {
    try (ObjectReader reader = held(dialect)) {
      Thread.currentThread().interrupt();
      assertThrows(InterruptedIOException.class, () -> reader.readAt(0, ByteBuffer.allocateDirect(SIZE)));
      assertTrue(Thread.interrupted());
    }
  }

  /** The engine's own threads write to a direct buffer, but not after the call has returned. */
  @ParameterizedTest
  @EnumSource
  void nothing_is_written_to_a_buffer_after_a_cancelled_call_has_returned(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(8_000_000);
    bucket.put("k", ByteBuffer.wrap(noise), PutOptions.NONE);
    ByteBuffer buffer = ByteBuffer.allocateDirect(noise.length);
    byte[] blank = new byte[noise.length];
    int cutShort = 0;
    try (ObjectReader reader = bucket.open("k")) {
      for (int round = 0; round < 40; round++) {
        buffer.clear();
        long before = received();
        CompletableFuture<Integer> read = reader.readAtAsync(0, buffer);
        // Cancel the read at a point between its first byte and its last.
        long wanted = before + 1 + round * 200_000L;
        until(() -> received() >= wanted || read.isDone());
        if (read.cancel(true)) {
          cutShort++;
        }
        // The buffer belongs to the test again.
        buffer.clear().put(blank);
        reader.readFully(17, ByteBuffer.allocateDirect(100_000));
        assertEquals(-1, buffer.clear().mismatch(ByteBuffer.wrap(blank)), "round " + round);
      }
    }
    assertTrue(cutShort > 0, "reads were cut short");
  }

  @ParameterizedTest
  @EnumSource
  void a_future_that_is_cancelled_or_times_out_ends_its_call(Serving dialect) throws Exception {
    try (ObjectReader reader = held(dialect)) {
      long before = received();
      CompletableFuture<Integer> read = reader.readAtAsync(0, ByteBuffer.allocateDirect(SIZE));
      untilBegun(before);
      assertTrue(read.cancel(true));
      assertThrows(CancellationException.class, read::join);
      assertFalse(read.cancel(true) && !read.isCancelled());
      CompletableFuture<Integer> late =
          reader.readAtAsync(0, ByteBuffer.allocate(SIZE)).orTimeout(10, TimeUnit.MILLISECONDS);
      CompletionException failure = assertThrows(CompletionException.class, late::join);
      assertInstanceOf(TimeoutException.class, failure.getCause());
    }
  }

  @ParameterizedTest
  @EnumSource
  void a_range_that_is_cancelled_leaves_the_others(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(SIZE);
    bucket.put("k", ByteBuffer.wrap(noise), PutOptions.NONE);
    try (ObjectReader reader = bucket.open("k")) {
      List<CompletableFuture<ByteBuffer>> ranges =
          reader.readRanges(List.of(new Range(0, 10), new Range(SIZE - 10, 10)), ByteBuffer::allocate);
      ranges.get(0).cancel(true);
      assertEquals(10, ranges.get(1).join().remaining());
    }
    try (ObjectReader reader = held(dialect)) {
      long before = received();
      List<CompletableFuture<ByteBuffer>> ranges =
          reader.readRanges(List.of(new Range(0, 200_000), new Range(200_000, 200_000)), ByteBuffer::allocateDirect);
      untilBegun(before);
      // Cancelling the last range ends the reading.
      ranges.forEach(range -> assertTrue(range.cancel(true)));
      ranges.forEach(range -> assertTrue(range.isCancelled()));
    }
  }

  /** A direct buffer has the first bytes of its range before the other bytes have arrived. */
  @ParameterizedTest
  @EnumSource
  void the_engine_writes_to_the_direct_buffers_of_ranges_itself(Serving dialect) throws Exception {
    try (ObjectReader reader = held(dialect)) {
      ByteBuffer beginning = ByteBuffer.wrap(noise(SIZE), 0, 1000);
      List<ByteBuffer> made = new ArrayList<>();
      CompletableFuture<ByteBuffer> range =
          reader
              .readRanges(
                  List.of(new Range(0, SIZE)),
                  length -> {
                    made.add(ByteBuffer.allocateDirect(length));
                    return made.get(0);
                  })
              .get(0);
      until(() -> made.get(0).slice(0, 1000).equals(beginning));
      assertFalse(range.isDone());
      assertTrue(range.cancel(true));
    }
  }

  @ParameterizedTest
  @EnumSource
  void nothing_is_written_to_the_buffer_of_a_range_after_it_was_cancelled(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(8_000_000);
    int half = noise.length / 2;
    bucket.put("k", ByteBuffer.wrap(noise), PutOptions.NONE);
    List<ByteBuffer> buffers = List.of(ByteBuffer.allocateDirect(half), ByteBuffer.allocateDirect(half));
    byte[] blank = new byte[half];
    int cutShort = 0;
    try (ObjectReader reader = bucket.open("k")) {
      for (int round = 0; round < 30; round++) {
        buffers.forEach(ByteBuffer::clear);
        long wanted = received() + 1 + round * 100_000L;
        int[] made = {0};
        List<CompletableFuture<ByteBuffer>> ranges =
            reader.readRanges(List.of(new Range(0, half), new Range(half, half)), length -> buffers.get(made[0]++));
        CompletableFuture<ByteBuffer> cancelled = ranges.get(round % 2);
        until(() -> received() >= wanted || cancelled.isDone());
        if (cancelled.cancel(true)) {
          cutShort++;
        }
        // One buffer belongs to the test again, and the other range arrives.
        ByteBuffer ours = buffers.get(round % 2).clear().put(blank).clear();
        int other = 1 - round % 2;
        assertEquals(ByteBuffer.wrap(noise, other * half, half), ranges.get(other).join());
        assertEquals(ByteBuffer.wrap(blank), ours, "round " + round);
      }
    }
    assertTrue(cutShort > 0, "ranges were cut short");
  }

  @ParameterizedTest
  @EnumSource
  void ranges_that_share_memory_are_refused(Serving dialect) throws Exception {
    try (ObjectReader reader = held(dialect)) {
      ByteBuffer one = ByteBuffer.allocateDirect(100);
      List<CompletableFuture<ByteBuffer>> ranges =
          reader.readRanges(
              List.of(new Range(0, 60), new Range(60, 50)), length -> length == 60 ? one : one.slice(50, 50));
      for (CompletableFuture<ByteBuffer> range : ranges) {
        CompletionException failure = assertThrows(CompletionException.class, range::join);
        assertEquals(ErrorKind.USAGE, ((LanewayException) failure.getCause()).kind());
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void a_range_whose_buffer_cannot_be_written_to_fails_alone(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    bucket.put("k", ByteBuffer.wrap(noise(SIZE)), PutOptions.NONE);
    try (ObjectReader reader = bucket.open("k")) {
      List<CompletableFuture<ByteBuffer>> ranges =
          reader.readRanges(
              List.of(new Range(0, 10), new Range(20, 30)),
              length -> length == 10 ? ByteBuffer.allocate(10).asReadOnlyBuffer() : ByteBuffer.allocate(length));
      CompletionException failure = assertThrows(CompletionException.class, ranges.get(0)::join);
      assertInstanceOf(ReadOnlyBufferException.class, failure.getCause());
      assertEquals(30, ranges.get(1).join().remaining());
    }
  }

  /**
   * Ending a read waits until the engine releases the buffer. The JVM has one thread for the timeouts of all futures,
   * and this thread must not wait.
   */
  @ParameterizedTest
  @EnumSource
  void a_timeout_ends_a_read_on_a_thread_that_may_wait(Serving dialect) throws Exception {
    try (ObjectReader reader = held(dialect)) {
      CompletableFuture<?> read = reader.readAtAsync(0, ByteBuffer.allocateDirect(SIZE));
      CompletableFuture<?> range =
          reader.readRanges(List.of(new Range(0, SIZE)), ByteBuffer::allocateDirect).get(0);
      for (CompletableFuture<?> late : List.of(read, range)) {
        AtomicReference<String> ender = new AtomicReference<>();
        CompletableFuture<?> noted = late.whenComplete((done, failure) -> ender.set(Thread.currentThread().getName()));
        late.orTimeout(20, TimeUnit.MILLISECONDS);
        CompletionException failure = assertThrows(CompletionException.class, noted::join);
        assertInstanceOf(TimeoutException.class, failure.getCause());
        assertFalse(ender.get().contains("Delay"), ender.get());
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void closing_a_reader_ends_what_is_under_way(Serving dialect) throws Exception {
    ObjectReader reader = held(dialect);
    long before = received();
    CompletableFuture<Integer> read = reader.readAtAsync(0, ByteBuffer.allocateDirect(SIZE));
    CompletableFuture<ByteBuffer> range =
        reader.readRanges(List.of(new Range(0, SIZE)), ByteBuffer::allocateDirect).get(0);
    untilBegun(before);
    reader.close();
    for (CompletableFuture<?> ended : List.of(read, range)) {
      CompletionException failure = assertThrows(CompletionException.class, ended::join);
      assertEquals(ErrorKind.CANCELLED, ((LanewayException) failure.getCause()).kind());
    }
  }

  @ParameterizedTest
  @EnumSource
  void a_download_is_read_no_further_once_it_is_closed_or_interrupted(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    bucket.put(Serving.HELD, ByteBuffer.wrap(noise(SIZE)), PutOptions.NONE);
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    long before = received();
    Thread thread =
        new Thread(
            () -> {
              try (Download download = bucket.get(Serving.HELD)) {
                download.bytes();
              } catch (Throwable failure) {
                thrown.set(failure);
              }
            });
    thread.start();
    untilBegun(before);
    thread.interrupt();
    thread.join();
    assertInstanceOf(InterruptedIOException.class, thrown.get());
  }

  @ParameterizedTest
  @EnumSource
  void a_stream_whose_write_was_interrupted_fails_at_its_end_and_leaves_nothing(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    OutputStream stream = bucket.writer("k", PutOptions.NONE).stream();
    // Larger than a part, so that the store already has a part of the object.
    byte[] noise = noise(20_000_000);
    stream.write(noise);
    Thread.currentThread().interrupt();
    IOException cut =
        assertThrows(
            InterruptedIOException.class,
            () -> {
              while (true) {
                stream.write(noise);
              }
            });
    IOException failure = assertThrows(IOException.class, stream::close);
    assertTrue(Thread.interrupted(), "the thread stays interrupted");
    assertSame(cut, failure.getCause());
    assertEquals(0, failure.getSuppressed().length, () -> "it was given up: " + Arrays.toString(failure.getSuppressed()));
    assertEquals(List.of(), bucket.multipartUploads(""));
    assertTrue(assertThrows(LanewayException.class, () -> bucket.head("k")).isNotFound());
    stream.close();
  }

  /** A try-with-resources around the writer reports the failure of the write. */
  @ParameterizedTest
  @EnumSource
  void a_try_throws_what_a_write_to_its_stream_has_failed_with(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(20_000_000);
    IOException cut =
        assertThrows(
            InterruptedIOException.class,
            () -> {
              try (OutputStream stream = bucket.writer("k", PutOptions.NONE).stream()) {
                Thread.currentThread().interrupt();
                while (true) {
                  stream.write(noise);
                }
              }
            });
    assertTrue(Thread.interrupted());
    assertSame(cut, cut.getSuppressed()[0].getCause());
  }

  @ParameterizedTest
  @EnumSource
  void a_put_that_is_given_up_leaves_no_object_or_a_whole_one(Serving dialect) throws Exception {
    Bucket bucket = dialect.bucket();
    byte[] noise = noise(2_000_000);
    ByteBuffer buffer = Serving.direct(noise);
    List<byte[]> whole = new ArrayList<>();
    for (int round = 0; round < 10; round++) {
      whole.add(noise.clone());
      noise[round] = (byte) round;
      CompletableFuture<Written> put = bucket.putAsync("given-up", buffer.duplicate(), PutOptions.NONE);
      put.cancel(true);
      // The caller may change the bytes now: the store has the bytes that were sent before, or no object.
      buffer.put(round, (byte) round);
    }
    bucket.put("after", ByteBuffer.wrap(text("goes on")), PutOptions.NONE);
    assertEquals(7, bucket.head("after").size());
    try (Download left = bucket.get("given-up")) {
      byte[] bytes = left.bytes();
      assertTrue(whole.stream().anyMatch(one -> Arrays.equals(one, bytes)), () -> bytes.length + " bytes of no round");
    } catch (LanewayException failure) {
      assertEquals(ErrorKind.NOT_FOUND, failure.kind());
    }
  }
}
