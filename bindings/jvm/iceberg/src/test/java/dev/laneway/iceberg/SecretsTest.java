package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.EchoingStore;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.SimpleLayout;
import org.apache.log4j.WriterAppender;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** No secret of a catalog stands in what is thrown, shown or logged, also where the store repeats it. */
class SecretsTest {
  /** What every secret of these tests begins with. */
  private static final String MARK = "CANARY";

  private static String shown(Throwable failure) {
    StringWriter text = new StringWriter();
    failure.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private static void check(String text) {
    assertFalse(text.contains(MARK), text);
  }

  @Test
  void noSecretIsTold() throws Exception {
    StringWriter log = new StringWriter();
    WriterAppender appender = new WriterAppender(new SimpleLayout(), log);
    Logger logger = Logger.getLogger("dev.laneway");
    Level level = logger.getLevel();
    logger.addAppender(appender);
    logger.setAdditivity(false);
    logger.setLevel(Level.DEBUG);
    try (EchoingStore store = new EchoingStore()) {
      LanewayFileIO io = new LanewayFileIO();
      io.initialize(Map.of(
          "s3.endpoint", store.url(),
          "client.region", "us-east-1",
          "s3.path-style-access", "true",
          "s3.access-key-id", "id",
          "s3.secret-access-key", MARK + "/secret",
          "s3.session-token", MARK + "/token",
          "gcs.service.host", store.url(),
          "gcs.oauth2.token", MARK + ".bearer"));
      for (String folder : List.of("s3://lake/", "gs://lake/")) {
        int before = store.asked();
        List<Executable> verbs = List.of(
            () -> io.newInputFile(folder + "k").exists(),
            () -> io.newInputFile(folder + "k").getLength(),
            () -> io.newInputFile(folder + "k").newStream(),
            () -> io.newOutputFile(folder + "k").create().close(),
            () -> io.deleteFile(folder + "k"),
            () -> io.deleteFiles(List.of(folder + "k", folder + "l")),
            () -> io.listPrefix(folder).iterator().hasNext(),
            () -> io.deletePrefix(folder));
        for (Executable verb : verbs) {
          check(shown(assertThrows(Exception.class, verb)));
        }
        assertTrue(store.asked() >= before + verbs.size(), "the store was asked");
        check(io + " " + io.newInputFile(folder + "k") + " " + io.newOutputFile(folder + "k"));
      }
      assertTrue(log.toString().contains("DEBUG"), "the log was told");
      check(log.toString());
    } finally {
      logger.removeAppender(appender);
      logger.setAdditivity(true);
      logger.setLevel(level);
    }
  }
}
