package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.EchoingStore;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.SimpleLayout;
import org.apache.log4j.WriterAppender;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** No secret of a configuration stands in what is thrown, shown or logged, also where the store repeats it. */
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
    Level before = logger.getLevel();
    logger.addAppender(appender);
    logger.setAdditivity(false);
    logger.setLevel(Level.DEBUG);
    try (EchoingStore store = new EchoingStore()) {
      Configuration conf = new Configuration();
      conf.set("fs.s3a.impl", LanewayFileSystem.class.getName());
      conf.set("fs.s3a.endpoint", store.url());
      conf.set("fs.s3a.endpoint.region", "us-east-1");
      conf.set("fs.s3a.path.style.access", "true");
      conf.set("fs.s3a.access.key", "id");
      conf.set("fs.s3a.secret.key", MARK + "/secret");
      conf.set("fs.s3a.session.token", MARK + "/token");
      try (FileSystem files = EmbeddedStore.open("s3a://lake/", conf)) {
        Path path = new Path("s3a://lake/a/b");
        List<Executable> verbs = List.of(
            () -> files.getFileStatus(path),
            () -> files.open(path),
            () -> files.listStatus(path),
            () -> files.mkdirs(path),
            () -> files.delete(path, true),
            () -> files.rename(path, new Path("s3a://lake/c")),
            () -> files.create(path));
        for (Executable verb : verbs) {
          check(shown(assertThrows(Exception.class, verb)));
        }
        conf.setBoolean("fs.s3a.create.performance", true);
        try (FileSystem others = EmbeddedStore.open("s3a://lake/", conf)) {
          FSDataOutputStream out = others.create(path, true);
          out.write(new byte[1 << 20]);
          check(out + " " + others);
          check(shown(assertThrows(Exception.class, out::close)));
        }
        assertTrue(store.asked() > verbs.size(), "the store was asked");
        check(files.toString() + Settings.of(files.getUri(), conf));
      }
      assertTrue(log.toString().contains("DEBUG"), "the log was told");
      check(log.toString());
    } finally {
      logger.removeAppender(appender);
      logger.setAdditivity(true);
      logger.setLevel(before);
    }
  }
}
