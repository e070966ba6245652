package dev.laneway;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** No secret appears in exceptions, texts or logs, even if the store repeats it. */
class SecretsTest {
  /** The beginning of every secret in these tests. */
  private static final String MARK = "CANARY";

  private static final String KEY =
      Base64.getEncoder().encodeToString((MARK + "-customer-key-of-32-bytes-------").substring(0, 32).getBytes());

  private static String shown(Throwable failure) {
    StringWriter text = new StringWriter();
    failure.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private static void check(String text) {
    assertFalse(text.contains(MARK) || text.contains(KEY), text);
  }

  @Test
  void no_secret_is_told() throws Exception {
    CredentialProvider provider =
        new CredentialProvider() {
          @Override
          public AccessKey accessKey() {
            return new AccessKey("id", MARK + "/provided", MARK + "/provided-token", Instant.now().plusSeconds(3600));
          }

          @Override
          public BearerToken bearerToken() {
            return new BearerToken(MARK + ".bearer", null);
          }
        };
    try (EchoingStore store = new EchoingStore()) {
      List<Laneway.Builder> builders =
          List.of(
              Laneway.builder().accessKey("id", MARK + "/secret").sessionToken(MARK + "/token"),
              Laneway.builder().credentialProvider(provider),
              Laneway.builder().accessKey("id", MARK + "/secret").customerKey(KEY));
      for (Laneway.Builder builder : builders) {
        builder.s3Endpoint(store.url()).gcsEndpoint(store.url()).region("us-east-1");
        check(builder.toString());
        try (Laneway laneway = builder.build()) {
          for (String url : List.of("s3://lake/", "gs://lake/")) {
            Bucket bucket = laneway.bucket(url);
            int before = store.asked();
            List<Executable> verbs =
                List.of(
                    () -> bucket.head("k"),
                    () -> bucket.open("k", OpenOptions.NONE.footer(100)),
                    () -> bucket.get("k"),
                    () -> bucket.put("k", ByteBuffer.allocate(10), PutOptions.NONE),
                    () -> bucket.list("").count(),
                    () -> bucket.delete("k"),
                    () -> bucket.copy("k", "l", CopyOptions.NONE),
                    () -> bucket.beginMultipart("k", PutOptions.NONE));
            for (Executable verb : verbs) {
              check(shown(assertThrows(Exception.class, verb)));
            }
            assertTrue(store.asked() >= before + verbs.size() - 1, "the store was asked");
            check(laneway + " " + bucket);
          }
        }
      }
    }
    check(Files.readString(Path.of(System.getProperty("org.slf4j.simpleLogger.logFile"))));
  }
}
