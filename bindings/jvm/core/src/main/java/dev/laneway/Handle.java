package dev.laneway;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A number of a native object. It releases the object when its owner closes it, or else when it is garbage collected.
 */
final class Handle implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  /** {@code trace} records where each object is opened, for the warning that it was not closed. */
  private static final boolean IS_TRACED = "trace".equals(System.getProperty("dev.laneway.leaks"));

  private final State state;
  private final Cleaner.Cleanable cleanable;

  private Handle(long number, String what, Throwable opened) {
    state = new State(number, what, opened);
    Engine.retain();
    cleanable = CLEANER.register(this, state);
  }

  /** Returns a handle that its owner must close. If it isn't closed, a warning names {@code what}. */
  static Handle watched(long number, String what) {
    return new Handle(number, what, here());
  }

  /** Returns the same for an object that a call has opened. The warning shows where the call began. */
  static Handle watched(Unpacked answer, String what) {
    return new Handle(answer.number(), what, answer.begun());
  }

  /** Returns the thread's current place, if tracing is on. */
  static Throwable here() {
    return IS_TRACED ? new Throwable("opened here") : null;
  }

  /** Returns a handle of an object that needs no closing. */
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

  /** Has no reference to the handle. Otherwise the handle could not be garbage collected. */
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
