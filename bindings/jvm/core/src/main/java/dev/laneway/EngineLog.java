package dev.laneway;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes the engine's messages, and warnings about its use, to slf4j's logger {@code dev.laneway}. */
final class EngineLog {
  private static final Logger LOGGER = LoggerFactory.getLogger("dev.laneway");

  // slf4j's numbers for its levels. bindings/core/src/log.rs has the same.
  private static final int TRACE = 0;
  private static final int DEBUG = 10;
  private static final int INFO = 20;
  private static final int WARN = 30;
  private static final int ERROR = 40;
  private static final int NONE = Integer.MAX_VALUE;

  /** The interval at which the logger's level is read again. */
  private static final long LEVEL_KEPT_NS = TimeUnit.MILLISECONDS.toNanos(200);

  /** The maximum number of records that wait for a slow appender. Further records are dropped and counted. */
  private static final int WAITING_MAX = 10_000;

  private static final AtomicLong DROPPED = new AtomicLong();

  /** Logs the records on one thread, so that they stay in order. The thread exists only while there are records. */
  private static final ThreadPoolExecutor SAYING =
      new ThreadPoolExecutor(
          1,
          1,
          1,
          TimeUnit.SECONDS,
          new LinkedBlockingQueue<>(WAITING_MAX),
          work -> {
            Thread thread = new Thread(null, work, "laneway-log", 0, false);
            thread.setDaemon(true);
            return thread;
          },
          (work, executor) -> DROPPED.incrementAndGet());

  static {
    SAYING.allowCoreThreadTimeOut(true);
  }

  private static volatile long lookedAt;
  private static volatile int level = NONE;

  private EngineLog() {}

  /** Passes the logger's level to the engine, unless that was done recently. */
  static void attend(long queue, boolean isNow) {
    long now = System.nanoTime();
    if (!isNow && now - lookedAt < LEVEL_KEPT_NS) {
      return;
    }
    lookedAt = now;
    int wanted = wanted();
    if (wanted != level) {
      level = wanted;
      Native.logLevel(queue, wanted);
    }
  }

  /** Makes the engine send no more records, because no thread reads the queue any more. */
  static void leave(long queue) {
    level = NONE;
    Native.logLevel(queue, NONE);
  }

  private static int wanted() {
    if (LOGGER.isTraceEnabled()) {
      return TRACE;
    }
    if (LOGGER.isDebugEnabled()) {
      return DEBUG;
    }
    if (LOGGER.isInfoEnabled()) {
      return INFO;
    }
    return LOGGER.isWarnEnabled() ? WARN : ERROR;
  }

  static void said(int level, String text) {
    SAYING.execute(
        () -> {
          long dropped = DROPPED.getAndSet(0);
          if (dropped > 0) {
            LOGGER.warn("{} log records were dropped, because they came faster than they could be written", dropped);
          }
          log(level, OptionNames.inJava(text));
        });
  }

  private static void log(int level, String text) {
    switch (level) {
      case ERROR -> LOGGER.error("{}", text);
      case WARN -> LOGGER.warn("{}", text);
      case INFO -> LOGGER.info("{}", text);
      case DEBUG -> LOGGER.debug("{}", text);
      default -> LOGGER.trace("{}", text);
    }
  }

  static void warn(String text) {
    LOGGER.warn("{}", text);
  }

  static void warn(String text, Throwable cause) {
    LOGGER.warn(text, cause);
  }

  static void aborted(String url) {
    LOGGER.warn("{} is not written, because its stream was closed without being completed", url);
  }

  static void leaked(String what, Throwable opened) {
    if (opened == null) {
      LOGGER.warn("{} was not closed (-Ddev.laneway.leaks=trace shows where it was opened)", what);
    } else {
      LOGGER.warn("{} was not closed", what, opened);
    }
  }
}
