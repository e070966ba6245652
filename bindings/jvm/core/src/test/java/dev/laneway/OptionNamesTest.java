package dev.laneway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Messages name options and arguments as Java's callers write them. */
class OptionNamesTest {
  @Test
  void the_programs_options_become_javas() {
    for (Map.Entry<String, String> one :
        Map.of(
                "set by --s3-endpoint or a variable", "set by Laneway.Builder.s3Endpoint or a variable",
                "gave up after the time of --retry-for", "gave up after the time of Laneway.Builder.retryFor",
                "add -r", "add JobOptions.recursive",
                "5 bytes are kept; run the same command to continue", "5 bytes are kept; run the same job to continue",
                "copy with cp -r instead, and add --no-clobber to skip objects that exist",
                    "use Laneway.copy with JobOptions.recursive instead, and add JobOptions.noClobber to skip objects that exist",
                "--existing and --ignore-existing cannot be combined",
                    "JobOptions.existing and JobOptions.ignoreExisting cannot be combined",
                "run aws sso login --profile p, or ls -r --json", "run aws sso login --profile p, or ls -r --json",
                "bucket/a--delete-b", "bucket/a--delete-b")
            .entrySet()) {
      assertEquals(one.getValue(), OptionNames.inJava(one.getKey()));
    }
  }

  @Test
  void a_failure_of_a_job_names_the_options_of_java() throws Exception {
    Bucket bucket = Serving.S3.bucket();
    bucket.put("d/a", ByteBuffer.allocate(1), PutOptions.NONE);
    LanewayException refused =
        assertThrows(
            LanewayException.class,
            () ->
                Serving.laneway()
                    .remove(List.of(bucket.url() + "d/"), JobOptions.NONE)
                    .join()
                    .orThrow());
    assertTrue(refused.getMessage().contains("JobOptions.recursive"), refused::getMessage);
  }

  @Test
  void a_bad_setting_is_named_by_its_method() {
    Map<String, Laneway.Builder> refused = new TreeMap<>();
    refused.put("s3Endpoint: the value must be a URL", Laneway.builder().s3Endpoint("not a url"));
    refused.put("gcsEndpoint: the value must be a URL", Laneway.builder().gcsEndpoint("ftp://localhost:9000"));
    refused.put("bandwidthLimit: the value must be at least 1", Laneway.builder().bandwidthLimit(0));
    refused.put("memory: the value must be at least 1048576", Laneway.builder().memory(10));
    refused.put("memory: the value has the wrong type", Laneway.builder().memory(-1));
    refused.put("connectionsMax: the value must be at least 1", Laneway.builder().connectionsMax(0));
    refused.put("retryFor: ", Laneway.builder().retryFor(Duration.ofSeconds(-1)));
    refused.put("stallTimeout: the value must be at least 1 ms", Laneway.builder().stallTimeout(Duration.ZERO));
    refused.put("customerKey: ", Laneway.builder().customerKey("abc"));
    refused.put("sessionToken needs Laneway.Builder.accessKey", Laneway.builder().sessionToken("t"));
    refused.forEach(
        (text, builder) -> {
          LanewayException failure = assertThrows(LanewayException.class, builder::build, text);
          assertEquals(ErrorKind.USAGE, failure.kind());
          assertTrue(failure.getMessage().startsWith("Laneway.Builder." + text), failure::getMessage);
        });
    assertEquals("engine: unknown", OptionNames.ofSetting("engine: unknown"));
  }

  @Test
  void a_missing_argument_is_named() throws Exception {
    Bucket bucket = Serving.S3.bucket();
    Laneway laneway = Serving.laneway();
    ByteBuffer bytes = ByteBuffer.allocate(1);
    Map<String, Executable> calls = new TreeMap<>();
    calls.put("url", () -> laneway.bucket(null));
    calls.put("destination", () -> laneway.copy(List.of("a"), null, JobOptions.NONE));
    calls.put("sources", () -> laneway.copy(null, "b", JobOptions.NONE));
    calls.put("targets", () -> laneway.remove(null, JobOptions.NONE));
    calls.put("source", () -> laneway.sync(null, "b", JobOptions.NONE));
    calls.put("key", () -> bucket.head(null));
    calls.put("bytes", () -> bucket.put("k", null, PutOptions.NONE));
    calls.put("options", () -> bucket.put("k", bytes, null));
    calls.put("prefix", () -> bucket.list(null));
    calls.put("keys", () -> bucket.deleteAll(null));
    calls.put("version", () -> bucket.delete("k", null));
    calls.put("from", () -> bucket.copy(null, "b"));
    calls.put("to", () -> bucket.copy("a", null));
    calls.put("id", () -> bucket.multipart("k", null));
    calls.put("parts", () -> bucket.multipart("k", "id").complete(null));
    calls.put("Laneway.Builder.s3Endpoint", () -> Laneway.builder().s3Endpoint(null));
    calls.put("Laneway.Builder.accessKey", () -> Laneway.builder().accessKey(null, "s"));
    calls.put("Laneway.Builder.header", () -> Laneway.builder().header("n", null));
    calls.put("JobOptions.filter", () -> JobOptions.NONE.filter(null));
    calls.put("PutOptions.ifVersion", () -> PutOptions.NONE.ifVersion(null));
    calls.put("value", () -> PutOptions.NONE.metadata("n", null));
    calls.put("AssumedRole.sessionName", () -> AssumedRole.of("arn").sessionName(null));
    calls.forEach((name, call) -> assertEquals(name, assertThrows(NullPointerException.class, call, name).getMessage()));
  }
}
