package dev.laneway;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;

/** A number of {@link Native}'s, and that what it means is given up: by its owner, or else by the garbage collector. */
final class Handle implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  /** {@code trace} notes where each thing is opened, for the warning that it was not closed. */
  private static final boolean IS_TRACED = "trace".equals(System.getProperty("dev.laneway.leaks"));

  private final State state;
  private final Cleaner.Cleanable cleanable;

  private Handle(long number, String what, Throwable opened) {
    state = new State(number, what, opened);
    Engine.retain();
    cleanable = CLEANER.register(this, state);
  }

  /** Of what an owner has to close; one that is not is told of, as {@code what}. */
  static Handle watched(long number, String what) {
    return new Handle(number, what, here());
  }

  /** The same of what a call has opened, which told where it was begun. */
  static Handle watched(Unpacked answer, String what) {
    return new Handle(answer.number(), what, answer.begun());
  }

  /** Where a thread is, if that is noted. */
  static Throwable here() {
    return IS_TRACED ? new Throwable("opened here") : null;
  }

  /** Of what needs no closing. */
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

  /** Knows nothing of the handle, which could not be collected else. */
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
