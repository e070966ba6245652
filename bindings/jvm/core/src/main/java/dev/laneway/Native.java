package dev.laneway;

import java.nio.ByteBuffer;

/**
 * The native methods. Native objects are named by numbers, which are never reused. So the number of a closed object is
 * unknown, and never points to memory. Native code doesn't call into Java: events are {@linkplain #take taken}.
 *
 * <p>{@code Answer} below is {@link Packed}: a flag, followed by the result, or by a failure if the flag isn't set.
 */
final class Native {
  // Verbs, with the numbers in bindings/core/src/verbs.rs.
  static final int HEAD = 1;
  static final int OPEN = 2;
  static final int GET = 3;
  static final int PUT = 4;
  static final int DELETE = 5;
  static final int DELETE_MANY = 6;
  static final int COPY = 7;
  static final int RENAME = 8;
  static final int LIST_SOME = 9;
  static final int LIST_DIR = 10;
  static final int BEGIN_MULTIPART = 11;
  static final int SEND_PART = 12;
  static final int COMPLETE_MULTIPART = 13;
  static final int ABORT_MULTIPART = 14;
  static final int LIST_MULTIPART = 15;
  static final int READ_AT = 16;
  static final int READ_INTO = 17;
  static final int READ_RANGES = 18;
  static final int READ_NEXT = 19;
  static final int CHUNK = 20;
  static final int WRITE = 21;
  static final int FINISH = 22;
  static final int ABORT = 23;
  static final int JOB_EVENTS = 24;
  static final int READ_RANGES_INTO = 25;

  static {
    NativeLibrary.load();
  }

  private Native() {}

  /** Returns the queue for the answers to a class loader's calls. */
  static native long queue();

  /** Returns the next event. Waits until there is one, or until it is {@linkplain #wake woken}. */
  static native byte[] take(long queue);

  /** Ends the wait of {@link #take}, now or the next time. */
  static native void wake(long queue);

  /** Sets the lowest of slf4j's levels whose records the engine sends. */
  static native void logLevel(long queue, int level);

  /** Makes a client. Returns an answer with its number. {@code provider} is asked through the queue, unless it is 0. */
  static native byte[] client(long queue, byte[] settings, long provider);

  /** Answers a request to a provider: a flag whether there are credentials, followed by them. */
  static native void provided(long ask, byte[] answer);

  /** Makes a bucket. Returns an answer with its number and URL. */
  static native byte[] bucket(long client, byte[] url);

  /** Makes a writer. Returns an answer with its number. */
  static native byte[] writer(long bucket, byte[] key);

  /** Begins a listing. Returns an answer with its number. */
  static native byte[] list(long bucket, byte[] what);

  /** Begins a job. Returns an answer with its number. */
  static native byte[] job(long client, byte[] request);

  /** Returns the progress of a job. */
  static native byte[] progress(long job);

  /** Cancels a job: begins nothing more, abandons work under way, and cleans up. */
  static native void cancelJob(long job);

  static native byte[] counters(long client);

  /** Releases the object of a number, and ends its work. */
  static native void close(long number);

  /** Begins a call. Its end is taken from the queue. */
  static native void begin(long queue, long call, int verb, long of, byte[] arguments);

  /**
   * Begins a call with the memory of a direct buffer. The verb reads or writes that memory until the call's end is in
   * the queue. The buffer must stay alive until then.
   */
  static native void lend(
      long queue, long call, int verb, long of, byte[] arguments, ByteBuffer memory, int at, int length);

  /**
   * Begins a call with a part of a direct buffer for each of several ranges. {@code parts} has each part's place and
   * length.
   */
  static native void lendSeveral(
      long queue, long call, int verb, long of, byte[] arguments, ByteBuffer[] memory, int[] parts);

  /** Begins a call with bytes of an array, which are copied before this returns. */
  static native void copied(
      long queue, long call, int verb, long of, byte[] arguments, byte[] bytes, int at, int length);

  /** Abandons a call. Its end still comes through the queue, once its lent memory is no longer used. */
  static native void cancel(long queue, long call);

  /** Gives up one range of a call with lent memory. Once this returns, nothing writes to the memory of this range. */
  static native void giveUp(long queue, long call, int range);

  static native void bodyToMemory(long body, int from, ByteBuffer memory, int at, int length);

  static native void bodyToArray(long body, int from, byte[] array, int at, int length);

  /** Reads bytes that are here already. Returns how many, or -1 if the call must wait for them. */
  static native int readNowToMemory(long reader, long position, ByteBuffer memory, int at, int length);

  static native int readNowToArray(long reader, long position, byte[] array, int at, int length);

  /** Frees bytes that were read ahead of a reader. */
  static native void dropAhead(long reader);

  /** Returns how many bytes a writer has taken at once. The others must wait. */
  static native int writeNowFromMemory(long writer, ByteBuffer memory, int at, int length);

  static native int writeNowFromArray(long writer, byte[] array, int at, int length);

  /** Does the same with a buffer. */
  static int writeNow(long writer, ByteBuffer bytes, int length) {
    int at = bytes.position();
    if (bytes.isDirect()) {
      return writeNowFromMemory(writer, bytes, at, length);
    }
    return bytes.hasArray()
        ? writeNowFromArray(writer, bytes.array(), bytes.arrayOffset() + at, length)
        : 0;
  }
}
