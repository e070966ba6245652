package dev.laneway.iceberg;

import static dev.laneway.Canaries.MARK;
import static dev.laneway.Canaries.check;

import dev.laneway.Canaries;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** No secret of a catalog appears in exceptions, texts or logs, even if the store repeats it. */
class SecretsTest {
  @Test
  void noSecretIsTold() throws Exception {
    try (Canaries canaries = new Canaries()) {
      LanewayFileIO io = new LanewayFileIO();
      io.initialize(Map.of(
          "s3.endpoint", canaries.url(),
          "client.region", "us-east-1",
          "s3.path-style-access", "true",
          "s3.access-key-id", "id",
          "s3.secret-access-key", MARK + "/secret",
          "s3.session-token", MARK + "/token",
          "gcs.service.host", canaries.url(),
          "gcs.oauth2.token", MARK + ".bearer"));
      for (String folder : List.of("s3://lake/", "gs://lake/")) {
        canaries.refused(List.of(
            () -> io.newInputFile(folder + "k").exists(),
            () -> io.newInputFile(folder + "k").getLength(),
            () -> io.newInputFile(folder + "k").newStream(),
            () -> io.newOutputFile(folder + "k").create().close(),
            () -> io.deleteFile(folder + "k"),
            () -> io.deleteFiles(List.of(folder + "k", folder + "l")),
            () -> io.listPrefix(folder).iterator().hasNext(),
            () -> io.deletePrefix(folder)));
        check(io + " " + io.newInputFile(folder + "k") + " " + io.newOutputFile(folder + "k"));
      }
    }
  }
}
