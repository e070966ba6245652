package dev.laneway;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.SimpleLayout;
import org.apache.log4j.WriterAppender;
import org.junit.jupiter.api.function.Executable;

/**
 * A store that repeats the headers of requests, recognisable secrets, and checks that no secret leaks. {@link #close}
 * checks the library's log records, in modules that log with log4j.
 */
public final class Canaries implements AutoCloseable {
  /** The beginning of every secret in these tests. */
  public static final String MARK = "CANARY";

  private final EchoingStore store = new EchoingStore();
  private final StringWriter log = new StringWriter();
  private final WriterAppender appender = new WriterAppender(new SimpleLayout(), log);
  private final Logger logger = Logger.getLogger("dev.laneway");
  private final Level before = logger.getLevel();

  public Canaries() {
    logger.addAppender(appender);
    logger.setAdditivity(false);
    logger.setLevel(Level.DEBUG);
  }

  /** Returns the store's URL. */
  public String url() {
    return store.url();
  }

  /** Checks that no secret is in a text. */
  public static void check(String text) {
    assertFalse(text.contains(MARK), text);
  }

  /** Runs calls that the store refuses, and checks that no secret is in their failures. */
  public void refused(List<Executable> verbs) {
    int asked = store.asked();
    for (Executable verb : verbs) {
      StringWriter text = new StringWriter();
      assertThrows(Exception.class, verb).printStackTrace(new PrintWriter(text));
      check(text.toString());
    }
    assertTrue(store.asked() >= asked + verbs.size(), "the store was asked");
  }

  @Override
  public void close() {
    store.close();
    logger.removeAppender(appender);
    logger.setAdditivity(true);
    logger.setLevel(before);
    assertTrue(log.toString().contains("DEBUG"), "the log was told");
    check(log.toString());
  }
}
