package dev.laneway;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Begins calls for this class loader. A thread reads the events of these calls from the native library's queue. It runs
 * as long as a native object is open.
 */
final class Engine {
  /** Kinds of events in the queue. Their numbers are defined in bindings/core/src/events.rs. */
  private static final int CALL_ENDED = 1;

  private static final int RANGE_CAME = 2;
  private static final int CREDENTIALS_WANTED = 3;
  private static final int SAID = 4;
  private static final int PROVIDER_LEFT = 5;
  private static final int RANGE_FILLED = 6;

  private static final long QUEUE = Native.queue();
  private static final AtomicLong LAST = new AtomicLong();
  private static final Map<Long, Call<?>> CALLS = new ConcurrentHashMap<>();
  private static final Map<Long, CredentialProvider> PROVIDERS = new ConcurrentHashMap<>();

  private static final Object LOCK = new Object();
  private static long users;
  private static boolean isListening;

  private Engine() {}

  /** Counts a native object that was opened. Starts the thread that reads the queue, unless it runs. */
  static void retain() {
    synchronized (LOCK) {
      if (!isListening) {
        EngineLog.attend(QUEUE, true);
        Thread thread = new Thread(null, Engine::listen, "laneway-calls", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        thread.start();
        isListening = true;
      }
      users++;
    }
  }

  /** Counts a native object that was closed. After the last one, wakes the thread, so that it can end. */
  static void release() {
    synchronized (LOCK) {
      users--;
      if (users > 0) {
        return;
      }
    }
    Native.wake(QUEUE);
  }

  static Handle client(Packed settings, CredentialProvider provider) throws LanewayException {
    EngineLog.attend(QUEUE, true);
    long asked = 0;
    if (provider != null) {
      asked = LAST.incrementAndGet();
      PROVIDERS.put(asked, provider);
    }
    boolean isMade = false;
    try {
      Unpacked made = now(Native.client(QUEUE, settings.bytes(), asked));
      isMade = true;
      return Handle.watched(made.number(), "a Laneway");
    } finally {
      if (!isMade) {
        PROVIDERS.remove(asked);
      }
    }
  }

  /** Returns the result in an answer that a native method returned, or throws the failure in it. */
  static Unpacked now(byte[] answer) throws LanewayException {
    Unpacked unpacked = new Unpacked(answer);
    if (!unpacked.flag()) {
      LanewayException failure = unpacked.failure();
      failure.fillInStackTrace();
      throw failure;
    }
    return unpacked;
  }

  static <T> Call<T> begin(
      int verb, Handle of, Packed arguments, Call.Reading<T> reading, Object... kept) {
    Call<T> call = new Call<>(reading, of, kept);
    begin(call, verb, of, arguments);
    return call;
  }

  static void begin(Call<?> call, int verb, Handle of, Packed arguments) {
    long number = registered(call);
    Native.begin(QUEUE, number, verb, of.number(), arguments.bytes());
  }

  /** Begins a call that reads or writes the remaining bytes of a buffer. The buffer's position doesn't change. */
  static <T> Call<T> lend(
      int verb, Handle of, Packed arguments, ByteBuffer bytes, Call.Reading<T> reading) {
    Call<T> call = new Call<>(reading, of, bytes);
    int at = bytes.position();
    int length = bytes.remaining();
    long number = registered(call);
    byte[] packed = arguments.bytes();
    if (bytes.isDirect()) {
      Native.lend(QUEUE, number, verb, of.number(), packed, bytes, at, length);
    } else if (bytes.hasArray()) {
      int from = bytes.arrayOffset() + at;
      Native.copied(QUEUE, number, verb, of.number(), packed, bytes.array(), from, length);
    } else {
      byte[] copy = new byte[length];
      bytes.duplicate().get(copy);
      Native.copied(QUEUE, number, verb, of.number(), packed, copy, 0, length);
    }
    return call;
  }

  /**
   * Begins a call that reads ranges. The engine writes the bytes of each range to a direct buffer, from its position
   * on.
   */
  static void lend(RangesCall call, int verb, Handle of, Packed arguments) {
    long number = registered(call);
    Native.lendSeveral(QUEUE, number, verb, of.number(), arguments.bytes(), call.buffers(), call.parts());
  }

  private static long registered(Call<?> call) {
    long number = LAST.incrementAndGet();
    call.begun(number);
    CALLS.put(number, call);
    return number;
  }

  static void cancel(Call<?> call) {
    Native.cancel(QUEUE, call.number());
  }

  /** Makes the engine stop writing to the buffer of one range of a call. */
  static void giveUp(RangesCall call, int range) {
    Native.giveUp(QUEUE, call.number(), range);
  }

  private static void listen() {
    while (true) {
      try {
        Unpacked happened = new Unpacked(Native.take(QUEUE));
        while (happened.hasMore()) {
          Unpacked event = happened.part();
          try {
            heard(event);
          } catch (Throwable failure) {
            // Continue, because the other events belong to other calls.
            EngineLog.warn("an event of the engine could not be handled", failure);
          }
        }
        EngineLog.attend(QUEUE, false);
      } catch (Throwable failure) {
        // Continue, because other calls need this thread.
        EngineLog.warn("an event of the engine could not be handled", failure);
      }
      synchronized (LOCK) {
        if (users == 0 && CALLS.isEmpty()) {
          EngineLog.leave(QUEUE);
          isListening = false;
          return;
        }
      }
    }
  }

  private static void heard(Unpacked event) {
    switch (event.count()) {
      case CALL_ENDED -> {
        Call<?> call = CALLS.remove(event.number());
        if (call != null) {
          call.ended(event);
        }
      }
      case RANGE_CAME -> {
        Call<?> call = CALLS.get(event.number());
        int range = event.count();
        Body body = Body.read(event);
        if (call instanceof RangesCall ranges) {
          ranges.came(range, body);
        } else {
          body.close();
        }
      }
      case RANGE_FILLED -> {
        if (CALLS.get(event.number()) instanceof RangesCall ranges) {
          ranges.filled(event.count(), event.count());
        }
      }
      case CREDENTIALS_WANTED -> {
        long ask = event.number();
        CredentialProvider provider = PROVIDERS.get(event.number());
        boolean isToken = event.flag();
        Thread thread =
            new Thread(null, () -> provide(ask, provider, isToken), "laneway-credentials", 0, false);
        thread.setDaemon(true);
        try {
          thread.start();
        } catch (OutOfMemoryError noThread) {
          // Report the failure to the call that waits for the credentials.
          Native.provided(ask, new Packed().flag(false).text(String.valueOf(noThread)).bytes());
        }
      }
      case PROVIDER_LEFT -> PROVIDERS.remove(event.number());
      case SAID -> EngineLog.said(event.count(), event.text());
      default ->
          throw new IllegalStateException(
              "the native library sent an unknown kind of event; the library and the jar have different versions");
    }
  }

  private static void provide(long ask, CredentialProvider provider, boolean isToken) {
    Packed answer = new Packed();
    try {
      answer = isToken ? token(provider.bearerToken()) : key(provider.accessKey());
    } catch (Throwable failure) {
      // The message may contain secrets. So it isn't logged, and goes only to the caller, which supplied the provider.
      answer = new Packed().flag(false).text(String.valueOf(failure));
    }
    Native.provided(ask, answer.bytes());
  }

  private static Packed key(CredentialProvider.AccessKey key) {
    Packed answer = new Packed().flag(true).flag(key != null);
    if (key != null) {
      answer.argument("AccessKey.id", key.id()).argument("AccessKey.secret", key.secret()).maybeText(key.sessionToken());
      end(answer, key.expiresAt());
    }
    return answer;
  }

  private static Packed token(CredentialProvider.BearerToken token) {
    Packed answer = new Packed().flag(true).flag(token != null);
    if (token != null) {
      answer.argument("BearerToken.token", token.token());
      end(answer, token.expiresAt());
    }
    return answer;
  }

  private static void end(Packed answer, Instant at) {
    answer.flag(at != null);
    if (at != null) {
      answer.number(at.toEpochMilli());
    }
  }
}
