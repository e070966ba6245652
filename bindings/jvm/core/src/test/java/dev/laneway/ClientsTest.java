package dev.laneway;

import static dev.laneway.Serving.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests how clients are set up and ask providers for credentials, and that they show no secrets. */
class ClientsTest {
  private static final String SECRET = "hush-hush-hush";

  @TempDir Path folder;

  @Test
  void a_provider_is_asked_for_keys() throws Exception {
    AtomicInteger asked = new AtomicInteger();
    CredentialProvider provider =
        new CredentialProvider() {
          @Override
          public AccessKey accessKey() {
            asked.incrementAndGet();
            return new AccessKey("laneway", "lanewaysecret", null, Instant.now().plus(Duration.ofHours(1)));
          }
        };
    try (Laneway laneway = Serving.settingsWithoutKeys().credentialProvider(provider).build()) {
      Bucket bucket = Serving.S3.bucket(laneway);
      bucket.put("k", ByteBuffer.wrap(text("bytes")), PutOptions.NONE);
      assertEquals(5, bucket.head("k").size());
      assertEquals(1, asked.get(), "once, as long as they last");
    }
  }

  @Test
  @Timeout(60)
  void a_provider_goes_with_the_last_of_what_came_of_its_client() throws Exception {
    WeakReference<CredentialProvider> provider = used();
    Serving.until(
        () -> {
          System.gc();
          return provider.get() == null;
        });
  }

  /** Returns a provider whose client was closed, and whose bucket is no longer referenced. */
  private static WeakReference<CredentialProvider> used() throws Exception {
    CredentialProvider provider =
        new CredentialProvider() {
          @Override
          public AccessKey accessKey() {
            return new AccessKey("laneway", "lanewaysecret");
          }
        };
    try (Laneway laneway = Serving.settingsWithoutKeys().credentialProvider(provider).build()) {
      Serving.S3.bucket(laneway).put("k", ByteBuffer.wrap(text("bytes")), PutOptions.NONE);
    }
    return new WeakReference<>(provider);
  }

  @Test
  void a_provider_that_fails_fails_the_call() throws Exception {
    CredentialProvider failing =
        new CredentialProvider() {
          @Override
          public AccessKey accessKey() throws Exception {
            throw new IllegalStateException("the broker is down");
          }
        };
    CredentialProvider without = new CredentialProvider() {};
    for (CredentialProvider provider : List.of(failing, without)) {
      try (Laneway laneway = Serving.settingsWithoutKeys().credentialProvider(provider).build()) {
        Bucket bucket = Serving.S3.bucket(laneway);
        LanewayException failure = assertThrows(LanewayException.class, () -> bucket.head("k"));
        assertEquals(ErrorKind.UNAUTHENTICATED, failure.kind());
        assertTrue(
            failure.getMessage().contains(provider == failing ? "the broker is down" : "no access keys"),
            failure.getMessage());
      }
    }
  }

  @Test
  void settings_that_make_no_sense_are_refused() {
    List<Laneway.Builder> builders =
        List.of(
            Laneway.builder().sessionToken(SECRET),
            Laneway.builder().customerKey(SECRET),
            Laneway.builder().caFile(folder.resolve("nothing.pem").toString()),
            Laneway.builder().serviceAccountFile(folder.resolve("nothing.json").toString()),
            Laneway.builder().header("Host", "elsewhere"),
            Laneway.builder().sse("rot13"));
    for (Laneway.Builder builder : builders) {
      LanewayException refused = assertThrows(LanewayException.class, builder::build);
      assertEquals(ErrorKind.USAGE, refused.kind(), refused.getMessage());
      assertFalse(refused.getMessage().contains(SECRET), refused.getMessage());
    }
  }

  @Test
  void nothing_shows_a_secret() throws Exception {
    Laneway.Builder builder = Serving.settings().accessKey("id", SECRET).sessionToken(SECRET).httpsProxy("http://u:" + SECRET + "@proxy");
    CredentialProvider.AccessKey key = new CredentialProvider.AccessKey("id", SECRET, SECRET, null);
    CredentialProvider.BearerToken token = new CredentialProvider.BearerToken(SECRET, null);
    try (Laneway laneway = builder.build()) {
      Bucket bucket = Serving.S3.bucket(laneway);
      String refused = assertThrows(LanewayException.class, () -> bucket.head("k")).toString();
      for (Object shown : List.of(builder, laneway, bucket, key, token, refused)) {
        assertFalse(shown.toString().contains(SECRET), shown.toString());
      }
    }
  }

  @Test
  void variables_of_the_callers_are_read() throws Exception {
    Path file = Files.writeString(folder.resolve("none"), "");
    Map<String, String> variables =
        Map.of(
            "AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1",
            "AWS_REGION", "r",
            "AWS_CONFIG_FILE", file.toString(),
            "AWS_SHARED_CREDENTIALS_FILE", file.toString(),
            "LANEWAY_RETRY_FOR", "0");
    try (Laneway laneway = Laneway.builder().fromVariables(variables).anonymous(true).build()) {
      LanewayException failure = assertThrows(LanewayException.class, () -> laneway.bucket("s3://lake").head("k"));
      assertEquals(ErrorKind.TRANSPORT, failure.kind(), failure.getMessage());
      assertTrue(failure.isRetryable());
    }
  }
}
