package dev.laneway.hadoop;

import dev.laneway.MultipartUpload;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.ClosedIOException;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;

/**
 * Writes a file that is {@linkplain Uncommitted to appear} once its job commits: the parts of an upload that this doesn't complete. Its close
 * waits until all of them are in the store.
 */
final class UploadOutput extends OutputStream
    implements Abortable, StreamCapabilities, IOStatisticsSource {
  /** Bytes of a part, which two of a file take in memory; ten thousand of them are 80 GiB. */
  private static final int PART_BYTES = 8 << 20;

  /** Parts under way beside the one that gathers. */
  private static final int PARTS_AT_ONCE = 2;

  /** What a part begins with: a small file holds no 8 MiB. */
  private static final int FIRST_BYTES = 64 << 10;

  /** Hears of a file that was written to its end. */
  interface Written {
    void wrote(PendingFile file);
  }

  private final Path path;
  private final String key;
  private final CompletableFuture<MultipartUpload> upload;
  private final Written listener;
  private final Tally tally;
  private final IOStatisticsStore counts = IOStatisticsBinding.iostatisticsStore()
      .withCounters(StreamStatisticNames.STREAM_WRITE_BYTES, StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
      .build();
  private final AtomicLong bytes = counts.getCounterReference(StreamStatisticNames.STREAM_WRITE_BYTES);
  private final Deque<CompletableFuture<String>> under = new ArrayDeque<>();
  private final List<String> parts = new ArrayList<>();
  private ByteBuffer gathered = ByteBuffer.allocate(FIRST_BYTES);
  private int begun;
  private IOException failure;
  private boolean isClosed;

  /**
   * @param path the name that it is written by, for messages
   * @param key the key that it is to have
   * @param upload the upload, which begins while the first bytes gather
   */
  UploadOutput(Path path, String key, CompletableFuture<MultipartUpload> upload, Written listener, Tally tally) {
    this.path = path;
    this.key = key;
    this.upload = upload;
    this.listener = listener;
    this.tally = tally;
  }

  @Override
  public synchronized void write(int one) throws IOException {
    check();
    room(1).put((byte) one);
    bytes.incrementAndGet();
  }

  @Override
  public synchronized void write(byte[] from, int at, int length) throws IOException {
    Objects.checkFromIndexSize(at, length, from.length);
    check();
    int end = at + length;
    for (int next = at; next < end; ) {
      ByteBuffer into = room(end - next);
      int some = Math.min(into.remaining(), end - next);
      into.put(from, next, some);
      next += some;
    }
    bytes.addAndGet(length);
  }

  @Override
  public synchronized void close() throws IOException {
    if (isClosed) {
      return;
    }
    isClosed = true;
    try {
      if (failure != null) {
        throw new PathIOException(path.toString(), "is not written, because a write has failed before", failure);
      }
      send();
      while (!under.isEmpty()) {
        sent();
      }
      listener.wrote(new PendingFile(key, Failures.await(path, upload).id(), List.copyOf(parts), bytes.get()));
    } catch (IOException failed) {
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS);
      giveUp();
      throw failed;
    } finally {
      gathered = null;
      tally.add(counts);
    }
  }

  @Override
  public synchronized AbortableResult abort() {
    boolean wasClosed = isClosed;
    isClosed = true;
    IOException failed = wasClosed ? null : giveUp();
    gathered = null;
    return new Aborted(wasClosed, failed);
  }

  @Override
  public boolean hasCapability(String capability) {
    return switch (capability.toLowerCase(Locale.ROOT)) {
      case StreamCapabilities.IOSTATISTICS, CommonPathCapabilities.ABORTABLE_STREAM -> true;
      default -> false;
    };
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }

  @Override
  public String toString() {
    return "UploadOutput[" + path + ", " + counts + "]";
  }

  private void check() throws IOException {
    if (isClosed) {
      throw new ClosedIOException(path.toString(), "is closed");
    }
    if (failure != null) {
      throw new PathIOException(path.toString(), "takes no more, because a write has failed", failure);
    }
  }

  /** Where bytes gather, some of which have room: a part that is full goes before. */
  private ByteBuffer room(int wanted) throws IOException {
    if (gathered.position() == PART_BYTES) {
      try {
        send();
      } catch (IOException failed) {
        failure = failed;
        throw failed;
      }
    }
    if (gathered.remaining() < wanted && gathered.capacity() < PART_BYTES) {
      long more = Math.max(2L * gathered.capacity(), (long) gathered.position() + wanted);
      gathered = ByteBuffer.allocate((int) Math.min(PART_BYTES, more)).put(gathered.flip());
    }
    return gathered;
  }

  /** Sends what has gathered: an empty part, too, where the file is empty. */
  private void send() throws IOException {
    if (gathered.position() == 0 && begun > 0) {
      return;
    }
    if (under.size() == PARTS_AT_ONCE) {
      sent();
    }
    ByteBuffer part = gathered.flip();
    gathered = ByteBuffer.allocate(isClosed ? 0 : PART_BYTES);
    begun++;
    tally.put();
    under.add(Failures.await(path, upload).uploadPartAsync(begun, part));
  }

  private void sent() throws IOException {
    parts.add(Failures.await(path, under.remove()));
  }

  /** Gives the upload up, whatever became of it. */
  private IOException giveUp() {
    under.forEach(part -> part.cancel(true));
    under.clear();
    boolean isInterrupted = Thread.interrupted();
    try {
      Failures.await(path, Failures.await(path, upload).abortAsync());
      return null;
    } catch (IOException failed) {
      return failed;
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private record Aborted(boolean alreadyClosed, IOException anyCleanupException) implements AbortableResult {}
}
