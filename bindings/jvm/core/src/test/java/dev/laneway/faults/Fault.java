package dev.laneway.faults;

import java.util.ArrayList;
import java.util.List;

/**
 * A fault of the embedded store.
 *
 * @param action the fault in the store's syntax
 * @param kind the kind of fault, which determines the expected outcome
 */
record Fault(String action, Kind kind) {
  enum Kind {
    THROTTLE("status 429", "status 429 retry-after 1s", "status 503", "status 503 retry-after 1s"),
    FAILURE("status 500", "status 502"),
    REFUSAL("status 403"),
    /** There is no answer, or the request broke off. The request wasn't carried out. */
    BREAK("reset", "drop", "cut"),
    /** The answer is incomplete or missing. The request may have been carried out. */
    LOSS("stall", "reset@100", "drop@100", "cut@100", "stall@100", "truncate@0", "truncate", "lose-answer"),
    SLOWNESS("slow 40KB/s", "delay 50ms"),
    CORRUPTION("corrupt"),
    WRONG_CHECKSUM("wrong-checksum"),
    NO_LENGTH("length none"),
    LONG_LENGTH("length +7"),
    SHORT_LENGTH("length -1"),
    OTHER_RANGE("range ignored", "range shifted"),
    /** Another writer has replaced the object. */
    REPLACEMENT("replace"),
    ERROR_IN_200("error-in-200"),
    UNREADABLE("garble", "malformed"),
    /** The connection accepts no more requests. */
    GOAWAY("goaway"),
    NOT_TAKEN("refuse-stream");

    private final List<String> actions;

    Kind(String... actions) {
      this.actions = List.of(actions);
    }
  }

  static List<Fault> all() {
    List<Fault> all = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      kind.actions.forEach(action -> all.add(new Fault(action, kind)));
    }
    return all;
  }

  boolean isOfHttp2() {
    return kind == Kind.GOAWAY || kind == Kind.NOT_TAKEN;
  }

  boolean isSilent() {
    return action.startsWith("stall");
  }
}
