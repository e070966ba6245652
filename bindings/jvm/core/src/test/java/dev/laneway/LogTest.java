package dev.laneway;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The engine's messages, and warnings about objects that are left open, are logged. */
@Timeout(60)
class LogTest {
  private static String log() {
    try {
      return Files.readString(Path.of(System.getProperty("org.slf4j.simpleLogger.logFile")));
    } catch (IOException unexpected) {
      throw new UncheckedIOException(unexpected);
    }
  }

  @Test
  void the_engine_speaks_in_slf4js_words() throws Exception {
    Serving.S3.bucket().put("k", ByteBuffer.allocate(1), PutOptions.NONE);
    Serving.until(() -> log().contains("INFO dev.laneway - connection opened"));
  }

  @Test
  void an_unclosed_reader_is_given_up_and_logged_with_its_opening_place() throws Exception {
    Bucket bucket = Serving.S3.bucket();
    bucket.put("forgotten", ByteBuffer.allocate(1), PutOptions.NONE);
    forget(bucket);
    Serving.until(
        () -> {
          System.gc();
          return log().contains("a reader of " + bucket.url() + "forgotten was not closed");
        });
    Serving.until(() -> log().contains("LogTest.forget"));
    assertTrue(log().contains("WARN dev.laneway - a reader of"));
  }

  private static void forget(Bucket bucket) throws IOException {
    assertTrue(bucket.open("forgotten").isOpen());
  }
}
