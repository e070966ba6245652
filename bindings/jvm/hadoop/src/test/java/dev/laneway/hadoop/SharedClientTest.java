package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.StringWriter;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.AbstractFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.SimpleLayout;
import org.apache.log4j.WriterAppender;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Hadoop makes a LanewayFs for each FileContext, and never closes it. */
class SharedClientTest {
  private static final int CONTEXTS = 20;

  private final Configuration conf = EmbeddedStore.with("lake").configuration();

  @Test
  void equalConfigurationsShareAClientAndOthersDoNot() throws IOException {
    URI lake = URI.create("s3a://lake/");
    Connection one = Connection.shared(Settings.of(lake, conf));
    assertSame(one, Connection.shared(Settings.of(lake, new Configuration(conf))));
    Configuration other = new Configuration(conf);
    other.set("fs.s3a.secret.key", "another");
    assertNotSame(one, Connection.shared(Settings.of(lake, other)));
    assertEquals("s3://lake/", one.bucket().url());
  }

  @Test
  @Timeout(60)
  void noContextIsWarnedOfAndAnUnclosedFilesystemIs() throws Exception {
    StringWriter log = new StringWriter();
    WriterAppender appender = new WriterAppender(new SimpleLayout(), log);
    Logger logger = Logger.getLogger("dev.laneway");
    logger.addAppender(appender);
    logger.setLevel(Level.WARN);
    try {
      for (int i = 0; i < CONTEXTS; i++) {
        AbstractFileSystem context = AbstractFileSystem.createFileSystem(URI.create("s3a://lake/"), conf);
        assertTrue(context.getFileStatus(new Path("/")).isDirectory());
      }
      forget();
      // Wait for the warning about the forgotten client. Warnings about the others would have appeared by then.
      while (!log.toString().contains("a Laneway was not closed")) {
        System.gc();
        Thread.yield();
      }
      long warnings = log.toString().lines().filter(line -> line.contains("a Laneway was not closed")).count();
      assertTrue(warnings < CONTEXTS, log::toString);
    } finally {
      logger.removeAppender(appender);
      logger.setLevel(null);
    }
  }

  private void forget() throws IOException {
    LanewayFileSystem files = new LanewayFileSystem();
    files.initialize(URI.create("s3a://lake/"), conf);
    assertTrue(files.exists(new Path("/")));
  }
}
