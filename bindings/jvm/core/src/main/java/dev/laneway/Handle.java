package dev.laneway;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A reference to a native object, which has a number. The object is released when the handle's owner closes the handle,
 * or when the handle is garbage collected.
 */
final class Handle implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  /**
   * True if the system property has the value {@code trace}. The warning that an object was not closed then shows where
   * the object was opened.
   */
  private static final boolean IS_TRACED = "trace".equals(System.getProperty("dev.laneway.leaks"));

  private final State state;
  private final Cleaner.Cleanable cleanable;

  private Handle(long number, String what, Throwable opened) {
    state = new State(number, what, opened);
    Engine.retain();
    cleanable = CLEANER.register(this, state);
  }

  /**
   * Returns a handle that its owner must close. If it is garbage collected before that, a warning names {@code what}.
   */
  static Handle watched(long number, String what) {
    return new Handle(number, what, here());
  }

  /** Returns a watched handle for an object that a call has opened. The warning shows where the call began. */
  static Handle watched(Unpacked answer, String what) {
    return new Handle(answer.number(), what, answer.begun());
  }

  /** Returns the current stack trace, or {@code null} unless {@link #IS_TRACED}. */
  static Throwable here() {
    return IS_TRACED ? new Throwable("opened here") : null;
  }

  /** Returns a handle that need not be closed. No warning appears if it is garbage collected. */
  static Handle quiet(long number) {
    return new Handle(number, null, null);
  }

  long number() {
    return state.number;
  }

  boolean isOpen() {
    return !state.isClosed.get();
  }

  @Override
  public void close() {
    state.isLeak = false;
    cleanable.clean();
  }

  /**
   * Releases the native object. This object must not refer to the handle. The cleaner keeps this object alive, so the
   * handle would never be garbage collected.
   */
  private static final class State implements Runnable {
    private final long number;
    private final String what;
    private final Throwable opened;
    private final AtomicBoolean isClosed = new AtomicBoolean();
    private volatile boolean isLeak = true;

    State(long number, String what, Throwable opened) {
      this.number = number;
      this.what = what;
      this.opened = opened;
    }

    @Override
    public void run() {
      if (isClosed.getAndSet(true)) {
        return;
      }
      if (isLeak && what != null) {
        EngineLog.leaked(what, opened);
      }
      Native.close(number);
      Engine.release();
    }
  }
}
