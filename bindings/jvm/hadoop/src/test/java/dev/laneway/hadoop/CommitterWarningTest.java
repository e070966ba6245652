package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.StringWriter;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.PatternLayout;
import org.apache.log4j.WriterAppender;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The log warns once about each committer that can't commit this filesystem's files. */
class CommitterWarningTest {
  @ParameterizedTest
  // Each warning appears once per process, and other tests have already caused the warnings for Hadoop's defaults. So
  // this test uses other schemes.
  @CsvSource({
    "s3, org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory, false, 1",
    "laneway+gs, org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory, false, 0",
    "laneway+gs, org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory, true, 1",
    "s3, dev.laneway.hadoop.UploadCommitterFactory, true, 0"
  })
  void aCommitterThatGoesWrongIsNamedOnce(String scheme, String factory, boolean writes, int warnings)
      throws IOException {
    StringWriter log = new StringWriter();
    WriterAppender appender = new WriterAppender(new PatternLayout("%m%n"), log);
    Logger logger = Logger.getLogger(LanewayFileSystem.class);
    logger.addAppender(appender);
    logger.setLevel(Level.WARN);
    try {
      Configuration conf = EmbeddedStore.with("lake").configuration();
      String key = "mapreduce.outputcommitter.factory.scheme." + scheme;
      conf.set(key, factory, "mapred-default.xml");
      for (int i = 0; i < 2; i++) {
        try (FileSystem files = EmbeddedStore.open(scheme + "://lake/", conf)) {
          if (writes) {
            files.create(new Path("/warned")).close();
          }
        }
      }
      String warning = key + " is " + factory + " (set by mapred-default.xml)";
      assertEquals(warnings, log.toString().lines().filter(line -> line.startsWith(warning)).count());
    } finally {
      logger.removeAppender(appender);
      logger.setLevel(null);
    }
  }
}
