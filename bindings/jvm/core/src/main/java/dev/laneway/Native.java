package dev.laneway;

import java.nio.ByteBuffer;

/**
 * The native methods. Java refers to native objects by numbers, which are never reused. So using a closed object is an
 * error, and never an access to freed memory. Native code doesn't call into Java: Java fetches events with {@link
 * #take}.
 *
 * <p>An answer below is an array written like {@link Packed}. It contains a flag for success, followed by the result or
 * the failure.
 */
final class Native {
  // Verbs. Their numbers are defined in bindings/core/src/verbs.rs.
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
  static final int PLAN_EVENTS = 26;

  static {
    NativeLibrary.load();
  }

  private Native() {}

  /** Creates a queue for the events of a class loader's calls. Returns its number. */
  static native long queue();

  /** Returns all events in the queue. Waits until there is one, or until {@link #wake} is called. */
  static native byte[] take(long queue);

  /** Makes {@link #take} return. If no thread is waiting in {@link #take}, the next call of it returns at once. */
  static native void wake(long queue);

  /** Sets the lowest slf4j level of the log records that the engine puts into the queue. */
  static native void logLevel(long queue, int level);

  /**
   * Makes a client. Returns an answer with the client's number. {@code provider} is the number of a provider, from
   * which the engine requests credentials with an event in the queue. The number 0 means that there is no provider.
   */
  static native byte[] client(long queue, byte[] settings, long provider);

  /**
   * Answers a request for credentials. The answer's result is a flag that says whether the provider has credentials,
   * followed by the credentials.
   */
  static native void provided(long ask, byte[] answer);

  /** Makes a bucket. Returns an answer with the bucket's number and URL. */
  static native byte[] bucket(long client, byte[] url);

  /** Makes a writer. Returns an answer with the writer's number. */
  static native byte[] writer(long bucket, byte[] key);

  /** Begins a listing. Returns an answer with the listing's number. */
  static native byte[] list(long bucket, byte[] what);

  /** Begins a job. Returns an answer with the job's number. */
  static native byte[] job(long client, byte[] request);

  /** Returns the progress of a job. */
  static native byte[] progress(long job);

  /** Cancels a job: it begins no more items, abandons running transfers, and cleans up. */
  static native void cancelJob(long job);

  /**
   * Begins an action on a plan. {@code of} is the number of the plan, or of the client that makes or opens one. Returns
   * an answer with the action's number.
   */
  static native byte[] plan(long of, byte[] request);

  /** Stops an action on a plan. A runner gives up its part, so that another runner can take it at once. */
  static native void stopPlan(long task);

  static native byte[] counters(long client);

  /** Releases the object with this number, and ends its work. */
  static native void close(long number);

  /** Begins a call. An event in the queue reports its end. */
  static native void begin(long queue, long call, int verb, long of, byte[] arguments);

  /**
   * Begins a call with the memory of a direct buffer. The verb reads or writes that memory until the queue reports the
   * call's end. The buffer must stay alive until then.
   */
  static native void lend(
      long queue, long call, int verb, long of, byte[] arguments, ByteBuffer memory, int at, int length);

  /**
   * Begins a call with a part of a direct buffer for each of several ranges. {@code parts} has two numbers for each
   * part: its offset in the buffer, and its length.
   */
  static native void lendSeveral(
      long queue, long call, int verb, long of, byte[] arguments, ByteBuffer[] memory, int[] parts);

  /** Begins a call with bytes of an array, which are copied before this returns. */
  static native void copied(
      long queue, long call, int verb, long of, byte[] arguments, byte[] bytes, int at, int length);

  /** Abandons a call. The queue still reports the call's end, once the call's lent memory is no longer used. */
  static native void cancel(long queue, long call);

  /** Gives up one range of a call with lent memory. Once this returns, nothing writes to the memory of this range. */
  static native void giveUp(long queue, long call, int range);

  static native void bodyToMemory(long body, int from, ByteBuffer memory, int at, int length);

  static native void bodyToArray(long body, int from, byte[] array, int at, int length);

  /**
   * Reads bytes that the engine has already received. Returns their number, or -1 if the caller must wait for bytes.
   */
  static native int readNowToMemory(long reader, long position, ByteBuffer memory, int at, int length);

  static native int readNowToArray(long reader, long position, byte[] array, int at, int length);

  /** Frees bytes that were read ahead of a reader. */
  static native void dropAhead(long reader);

  /** Writes as many bytes as a writer accepts without waiting. Returns their number. */
  static native int writeNowFromMemory(long writer, ByteBuffer memory, int at, int length);

  static native int writeNowFromArray(long writer, byte[] array, int at, int length);

  /**
   * Does the same as {@link #writeNowFromMemory}, with any kind of buffer. Returns 0 if the buffer's memory can't be
   * accessed from here.
   */
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
