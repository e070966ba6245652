package dev.laneway;

import java.nio.ByteBuffer;

/**
 * The seam. What lies behind it is named by numbers, which are given once and never again, so that one that is closed is unknown there and no memory's. Nothing
 * calls from there into Java: what has happened is {@linkplain #take taken}.
 *
 * <p>{@code Answer} below is {@link Packed}: a flag, and behind it what was asked for, or with the flag unset a failure.
 */
final class Native {
  // Verbs, by the numbers that bindings/core/src/verbs.rs has.
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

  /** What a class loader's calls are answered in. */
  static native long queue();

  /** What has happened, one after the other; waits until something has, or until it is {@linkplain #wake woken}. */
  static native byte[] take(long queue);

  /** Ends the wait of {@link #take}, now or the next time. */
  static native void wake(long queue);

  /** Which records of the engine's are wanted: none below this one of slf4j's levels. */
  static native void logLevel(long queue, int level);

  /** A client: an answer with its number. {@code provider} is asked through the queue, if it isn't 0. */
  static native byte[] client(long queue, byte[] settings, long provider);

  /** Answers what a provider was asked: an answer with a flag whether there are credentials, and these. */
  static native void provided(long ask, byte[] answer);

  /** A bucket: an answer with its number and URL. */
  static native byte[] bucket(long client, byte[] url);

  /** A writer: an answer with its number. */
  static native byte[] writer(long bucket, byte[] key);

  /** A listing: an answer with its number. */
  static native byte[] list(long bucket, byte[] what);

  /** A job that begins: an answer with its number. */
  static native byte[] job(long client, byte[] request);

  /** How far a job is. */
  static native byte[] progress(long job);

  /** Begins nothing more of a job, gives up what is under way and cleans up. */
  static native void cancelJob(long job);

  static native byte[] counters(long client);

  /** Forgets what a number means, and ends what it does. */
  static native void close(long number);

  /** Begins a call, whose end is taken from the queue. */
  static native void begin(long queue, long call, int verb, long of, byte[] arguments);

  /**
   * The same with memory of a direct buffer that is lent to it: it is taken to be read or written, by the verb, until the call's end is in the queue, and the
   * buffer has to be kept until then.
   */
  static native void lend(
      long queue, long call, int verb, long of, byte[] arguments, ByteBuffer memory, int at, int length);

  /** The same with a part of a direct buffer for each of several ranges: {@code parts} has the place and the length of each. */
  static native void lendSeveral(
      long queue, long call, int verb, long of, byte[] arguments, ByteBuffer[] memory, int[] parts);

  /** The same with bytes of an array, which are copied before this returns. */
  static native void copied(
      long queue, long call, int verb, long of, byte[] arguments, byte[] bytes, int at, int length);

  /** Gives a call up; its end comes all the same, once nothing that was lent to it is used any more. */
  static native void cancel(long queue, long call);

  /** Gives up one range of a call that was lent memory for each: nothing is written to that of this range once this returns. */
  static native void giveUp(long queue, long call, int range);

  static native void bodyToMemory(long body, int from, ByteBuffer memory, int at, int length);

  static native void bodyToArray(long body, int from, byte[] array, int at, int length);

  /** Reads on where bytes are here already: how many, or -1 where they have to be waited for. */
  static native int readNowToMemory(long reader, long position, ByteBuffer memory, int at, int length);

  static native int readNowToArray(long reader, long position, byte[] array, int at, int length);

  /** Lets go of what was read ahead of a reader. */
  static native void dropAhead(long reader);

  /** How many bytes a writer has taken at once; the others have to wait for those that go. */
  static native int writeNowFromMemory(long writer, ByteBuffer memory, int at, int length);

  static native int writeNowFromArray(long writer, byte[] array, int at, int length);

  /** The same of a buffer. */
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
