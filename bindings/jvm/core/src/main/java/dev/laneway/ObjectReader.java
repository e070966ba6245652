package dev.laneway;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NonWritableChannelException;
import java.nio.channels.SeekableByteChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;

/**
 * One version of an object, open for reads. If the object is replaced, reads fail with {@link ErrorKind#PRECONDITION}.
 *
 * <p>Any number of threads may read at positions ({@link #readAt}, {@link #readRanges}). Only one thread at a time may
 * use it as a channel, which reads ahead. Closing it ends running reads.
 */
public final class ObjectReader implements SeekableByteChannel {
  private final String url;
  private final Handle handle;
  private final ObjectMeta meta;
  private final Set<Call<?>> underWay = ConcurrentHashMap.newKeySet();
  private long position;

  private ObjectReader(String url, Handle handle, ObjectMeta meta) {
    this.url = url;
    this.handle = handle;
    this.meta = meta;
  }

  static ObjectReader read(String url, Unpacked answer) {
    Handle handle = Handle.watched(answer, "a reader of " + url);
    return new ObjectReader(url, handle, ObjectMeta.read(answer));
  }

  /** Returns the object's metadata at the time it was opened, or the known metadata that it was opened with. */
  public ObjectMeta meta() {
    return meta;
  }

  /** Returns the object's size in bytes. */
  @Override
  public long size() {
    return meta.size();
  }

  /**
   * Reads the object's bytes from a position on into the buffer, until the buffer is full or the object ends. The
   * buffer's position advances by the number of bytes read. The engine itself writes to a direct buffer's memory. For
   * any other buffer, the bytes are copied once.
   *
   * @return the number of bytes; -1 if the object ends at or before the position, unless the buffer has no room
   */
  public int readAt(long position, ByteBuffer into) throws IOException {
    check(position, into);
    int at = into.position();
    int read;
    if (into.isDirect()) {
      read = done(lent(position, into, Unpacked::count));
      into.position(at + read);
    } else {
      try (Body body = done(fetched(position, into, Body::read))) {
        read = body.copyTo(into);
      }
    }
    return read == 0 && into.remaining() > 0 ? -1 : read;
  }

  /**
   * Does the same as {@link #readAt(long, ByteBuffer)}, and fails with an {@link EOFException} if the object ends
   * before the buffer is full.
   */
  public void readFully(long position, ByteBuffer into) throws IOException {
    int wanted = Objects.requireNonNull(into, "into").remaining();
    if (position < 0 || position > size() - wanted) {
      throw new EOFException(url + ": " + wanted + " bytes from " + position + " on reach beyond its " + size());
    }
    int read = readAt(position, into);
    if (wanted > 0 && read != wanted) {
      throw new EOFException(url + ": " + read + " of " + wanted + " bytes from " + position + " on");
    }
  }

  /**
   * Does the same as {@link #readAt}. The buffer belongs to the call until the future is done. The buffer's position
   * has moved by then. {@code cancel} waits until nothing writes to the buffer any more.
   */
  public CompletableFuture<Integer> readAtAsync(long position, ByteBuffer into) {
    Call<Integer> call;
    try {
      check(position, into);
      call = into.isDirect() ? lent(position, into, new Landing(into)) : fetched(position, into, new Landing(into));
    } catch (IOException failure) {
      return CompletableFuture.failedFuture(failure);
    }
    call.asFuture().whenComplete((done, failure) -> underWay.remove(call));
    return call;
  }

  /**
   * Reads ranges together. Laneway fetches neighbouring ranges with one request if fetching the bytes between them
   * costs less than another request. It divides long ranges. A future completes as soon as its range has arrived. Its
   * value is the buffer from {@code allocate}, whose remaining bytes are the range. Ranges may repeat or overlap. If
   * one range reaches beyond the object's end, all fail with an {@link EOFException} before any byte is read.
   *
   * <p>Laneway reads ahead in a Parquet file whose footer came with the opening request ({@link OpenOptions#footer}).
   * It does so for a program that reads the same columns of one row group after the other. The more the program has
   * read, the more Laneway fetches ahead, up to 16 MiB.
   *
   * <p>If all buffers are direct and none overlap, the engine writes to them itself. Only columns that were read ahead
   * and bytes that came with the opening request are copied. Ranges for other buffers are copied once.
   *
   * <p>After a future is cancelled, nothing writes to its buffer. If all futures are cancelled, the requests end.
   *
   * @return futures in the order of the ranges
   */
  public List<CompletableFuture<ByteBuffer>> readRanges(List<Range> ranges, IntFunction<ByteBuffer> allocate)
      throws IOException {
    opened();
    Objects.requireNonNull(allocate, "allocate");
    for (Range range : Objects.requireNonNull(ranges, "ranges")) {
      if (range.end() > size()) {
        throw new EOFException(url + ": " + range + " reaches beyond its " + size() + " bytes");
      }
    }
    RangesCall call = new RangesCall(handle, ranges, allocate);
    if (!ranges.isEmpty()) {
      Packed packed = new Packed().number(ranges.size());
      ranges.forEach(range -> packed.number(range.position()).number(range.end()));
      if (call.isLent()) {
        Engine.lend(call, Native.READ_RANGES_INTO, handle, packed);
      } else {
        Engine.begin(call, Native.READ_RANGES, handle, packed);
      }
      noted(call);
      // Ranges may be copied to their buffers after the call itself has ended. So wait for all ranges.
      CompletableFuture.allOf(call.futures().toArray(CompletableFuture[]::new))
          .whenComplete((done, failure) -> underWay.remove(call));
    }
    return new ArrayList<>(call.futures());
  }

  /** Reads the next bytes in order, which are fetched ahead. Returns -1 at the end. */
  @Override
  public int read(ByteBuffer into) throws IOException {
    opened();
    int length = into.remaining();
    if (length == 0) {
      return 0;
    }
    if (position >= size()) {
      return -1;
    }
    int read = readNow(into, length);
    if (read < 0) {
      Packed packed = new Packed().number(position).number(length);
      try (Body body = done(noted(Engine.begin(Native.READ_NEXT, handle, packed, Body::read)))) {
        read = body.copyTo(into);
      }
    } else {
      into.position(into.position() + read);
    }
    position += read;
    return read == 0 ? -1 : read;
  }

  @Override
  public long position() {
    return position;
  }

  /** Moves to another position, which may lie beyond the end. Reads return -1 there. Sends no request. */
  @Override
  public SeekableByteChannel position(long position) throws IOException {
    opened();
    if (position < 0) {
      throw new IllegalArgumentException("the position is before the beginning: " + position);
    }
    this.position = position;
    return this;
  }

  /**
   * Returns a stream that reads in order. Closing the stream closes the reader. The stream and the reader share one
   * position, so use only one of them.
   */
  public ObjectStream stream() {
    return new ObjectStream(this);
  }

  /**
   * Frees the bytes that the engine read ahead for {@link #read} and {@link #readRanges}, and abandons running fetches.
   * It doesn't end a running read.
   */
  public void dropAhead() {
    Native.dropAhead(handle.number());
  }

  /** Not supported: this object is open for reads. */
  @Override
  public int write(ByteBuffer bytes) {
    throw new NonWritableChannelException();
  }

  /** Not supported: this object is open for reads. */
  @Override
  public SeekableByteChannel truncate(long size) {
    throw new NonWritableChannelException();
  }

  @Override
  public boolean isOpen() {
    return handle.isOpen();
  }

  /** Ends running reads, and returns once nothing writes to their buffers any more. */
  @Override
  public void close() {
    handle.close();
    for (Call<?> call : underWay) {
      call.completeExceptionally(closed());
      if (call instanceof RangesCall ranges) {
        ranges.giveUpCopies();
      }
    }
  }

  @Override
  public String toString() {
    return "ObjectReader[" + url + ", size=" + size() + "]";
  }

  private void opened() throws ClosedChannelException {
    if (!handle.isOpen()) {
      throw new ClosedChannelException();
    }
  }

  private int readNow(ByteBuffer into, int length) {
    int at = into.position();
    if (Objects.requireNonNull(into, "into").isReadOnly()) {
      throw new ReadOnlyBufferException();
    }
    return into.isDirect()
        ? Native.readNowToMemory(handle.number(), position, into, at, length)
        : Native.readNowToArray(handle.number(), position, into.array(), into.arrayOffset() + at, length);
  }

  private void check(long position, ByteBuffer into) throws ClosedChannelException {
    opened();
    if (position < 0) {
      throw new IllegalArgumentException("the position is before the beginning: " + position);
    }
    if (into.isReadOnly()) {
      throw new ReadOnlyBufferException();
    }
  }

  /** Reads straight into a direct buffer's memory. */
  private Call<Integer> lent(long position, ByteBuffer into, Call.Reading<Integer> reading) {
    return noted(Engine.lend(Native.READ_INTO, handle, new Packed().number(position), into, reading));
  }

  /** Reads bytes that are copied to the buffer when they have arrived. */
  private <T> Call<T> fetched(long position, ByteBuffer into, Call.Reading<T> reading) {
    Packed packed = new Packed().number(position).number(into.remaining());
    return noted(Engine.begin(Native.READ_AT, handle, packed, reading));
  }

  private <T> Call<T> noted(Call<T> call) {
    underWay.add(call);
    if (!handle.isOpen()) {
      // Another thread closed the reader meanwhile, and didn't end this call.
      call.completeExceptionally(closed());
    }
    return call;
  }

  private <T> T done(Call<T> call) throws IOException {
    try {
      return call.await();
    } finally {
      underWay.remove(call);
    }
  }

  private LanewayException closed() {
    return new LanewayException(ErrorKind.CANCELLED, url + ": its reader was closed");
  }

  /** Handles the end of a read, and advances the buffer's position by the number of bytes read. */
  private static final class Landing implements Call.Reading<Integer> {
    private final ByteBuffer into;
    private final boolean hasRoom;

    Landing(ByteBuffer into) {
      this.into = into;
      this.hasRoom = into.hasRemaining();
    }

    @Override
    public Integer of(Unpacked answer) {
      int read;
      if (into.isDirect()) {
        read = answer.count();
        into.position(into.position() + read);
      } else {
        try (Body body = Body.read(answer)) {
          read = body.copyTo(into);
        }
      }
      return read == 0 && hasRoom ? -1 : read;
    }

    @Override
    public void unwanted(Unpacked answer) {
      if (!into.isDirect()) {
        Body.read(answer).close();
      }
    }
  }
}
