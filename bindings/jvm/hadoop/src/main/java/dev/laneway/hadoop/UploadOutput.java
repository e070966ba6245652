package dev.laneway.hadoop;

import dev.laneway.MultipartUpload;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;

/**
 * Writes a file that {@linkplain Uncommitted appears} once its job commits. It sends the parts of an upload and doesn't
 * complete it. Closing it waits until all parts are in the store.
 */
final class UploadOutput extends FileOutput {
  /** The size of a part. A file holds two of them in memory. Ten thousand parts are 80 GiB. */
  private static final int PART_BYTES = 8 << 20;

  /** The maximum number of parts that are being sent, without the part that is being filled. */
  private static final int PARTS_AT_ONCE = 2;

  /** The initial buffer of a part, so that a small file doesn't hold 8 MiB. */
  private static final int FIRST_BYTES = 64 << 10;

  /** Receives a file that was written to its end. */
  interface Written {
    void wrote(PendingFile file);
  }

  private final String key;
  private final CompletableFuture<MultipartUpload> upload;
  private final Written listener;
  private final Tally tally;
  private final Deque<CompletableFuture<String>> under = new ArrayDeque<>();
  private final List<String> parts = new ArrayList<>();
  private ByteBuffer gathered = ByteBuffer.allocate(FIRST_BYTES);
  private int begun;

  /**
   * @param path the path that it is written to, for messages
   * @param key the key that it will have
   * @param upload the upload, which begins while the first bytes gather
   * @param isOver tells whether the filesystem is closed
   */
  UploadOutput(
      Path path,
      String key,
      CompletableFuture<MultipartUpload> upload,
      Written listener,
      Tally tally,
      BooleanSupplier isOver) {
    super(path, tally, isOver);
    this.key = key;
    this.upload = upload;
    this.listener = listener;
    this.tally = tally;
  }

  @Override
  void take(byte[] from, int at, int length) throws IOException {
    int end = at + length;
    for (int next = at; next < end; ) {
      ByteBuffer into = room(end - next);
      int some = Math.min(into.remaining(), end - next);
      into.put(from, next, some);
      next += some;
    }
  }

  @Override
  void finish() throws IOException {
    send(ByteBuffer.allocate(0));
    while (!under.isEmpty()) {
      sent();
    }
    listener.wrote(new PendingFile(key, begun().id(), List.copyOf(parts), written()));
  }

  /** Aborts the upload, whatever its state. */
  @Override
  void giveUp() throws IOException {
    gathered = null;
    under.forEach(part -> part.cancel(true));
    under.clear();
    if (upload.isCompletedExceptionally()) {
      // Nothing has begun.
      return;
    }
    Failures.await(path(), begun().abortAsync());
  }

  /**
   * Returns the upload, once it has begun. If the wait is interrupted, the request that begins the upload isn't
   * cancelled. So the upload can still be found and aborted.
   */
  private MultipartUpload begun() throws IOException {
    return Failures.await(path(), upload.copy());
  }

  @Override
  public boolean hasCapability(String capability) {
    return switch (capability.toLowerCase(Locale.ROOT)) {
      case StreamCapabilities.IOSTATISTICS, CommonPathCapabilities.ABORTABLE_STREAM -> true;
      default -> false;
    };
  }

  /** Returns the buffer that is being filled, with room for at least some of the bytes. A full part is sent first. */
  private ByteBuffer room(int wanted) throws IOException {
    if (gathered.position() == PART_BYTES) {
      send(ByteBuffer.allocate(PART_BYTES));
    }
    if (gathered.remaining() < wanted && gathered.capacity() < PART_BYTES) {
      long more = Math.max(2L * gathered.capacity(), (long) gathered.position() + wanted);
      gathered = ByteBuffer.allocate((int) Math.min(PART_BYTES, more)).put(gathered.flip());
    }
    return gathered;
  }

  /** Sends the part that was filled, and continues with another buffer. If the file is empty, sends an empty part. */
  private void send(ByteBuffer next) throws IOException {
    if (gathered.position() == 0 && begun > 0) {
      return;
    }
    if (under.size() == PARTS_AT_ONCE) {
      sent();
    }
    ByteBuffer part = gathered.flip();
    gathered = next;
    begun++;
    tally.put();
    under.add(begun().uploadPartAsync(begun, part));
  }

  private void sent() throws IOException {
    parts.add(Failures.await(path(), under.remove()));
  }
}
