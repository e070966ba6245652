package dev.laneway.hadoop;

import static dev.laneway.Canaries.MARK;
import static dev.laneway.Canaries.check;

import dev.laneway.Canaries;
import java.net.URI;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** No secret of a configuration appears in exceptions, texts or logs, even if the store repeats it. */
class SecretsTest {
  @Test
  void noSecretIsTold() throws Exception {
    try (Canaries canaries = new Canaries()) {
      Configuration conf = new Configuration();
      conf.set("fs.s3a.impl", LanewayFileSystem.class.getName());
      conf.set("fs.s3a.endpoint", canaries.url());
      conf.set("fs.s3a.endpoint.region", "us-east-1");
      conf.set("fs.s3a.path.style.access", "true");
      conf.set("fs.s3a.access.key", "id");
      conf.set("fs.s3a.secret.key", MARK + "/secret");
      conf.set("fs.s3a.session.token", MARK + "/token");
      URI store = URI.create(canaries.url());
      conf.set("fs.s3a.proxy.host", store.getHost());
      conf.set("fs.s3a.proxy.port", Integer.toString(store.getPort()));
      conf.set("fs.s3a.proxy.username", "me");
      conf.set("fs.s3a.proxy.password", MARK + "/proxy");
      try (FileSystem files = EmbeddedStore.open("s3a://lake/", conf)) {
        Path path = new Path("s3a://lake/a/b");
        canaries.refused(List.of(
            () -> files.getFileStatus(path),
            () -> files.open(path),
            () -> files.listStatus(path),
            () -> files.mkdirs(path),
            () -> files.delete(path, true),
            () -> files.rename(path, new Path("s3a://lake/c")),
            () -> files.create(path)));
        conf.setBoolean("fs.s3a.create.performance", true);
        try (FileSystem others = EmbeddedStore.open("s3a://lake/", conf)) {
          FSDataOutputStream out = others.create(path, true);
          out.write(new byte[1 << 20]);
          check(out + " " + others);
          canaries.refused(List.of(out::close));
        }
        conf.set("fs.s3a.encryption.algorithm", "SSE-C");
        conf.set("fs.s3a.encryption.key", MARK + "/key");
        Settings settings = Settings.of(files.getUri(), conf);
        check(files.toString() + settings + settings.encryption());
        conf.set("fs.gs.storage.http.headers.authorization", MARK + "/header");
        check(Settings.of(URI.create("gs://lake/"), conf).toString());
      }
    }
  }
}
