package dev.laneway.iceberg;

import dev.laneway.hadoop.EmbeddedStore;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;

/** The properties of the tests' catalogs. */
final class Catalogs {
  private static final String HOST = EmbeddedStore.ACCOUNT + ".dfs.core.windows.net";

  private Catalogs() {}

  /** Returns the root of a bucket's locations. */
  static String root(String scheme, String bucket) {
    return scheme + "://" + bucket + (scheme.startsWith("abfs") ? "@" + HOST : "") + "/";
  }

  /** Returns properties that reach a store in all dialects, named as for Iceberg's own FileIOs. */
  static Map<String, String> properties(EmbeddedStore store) {
    Map<String, String> properties = new HashMap<>();
    properties.put(CatalogProperties.FILE_IO_IMPL, LanewayFileIO.class.getName());
    properties.put("s3.endpoint", store.url());
    properties.put("s3.path-style-access", "true");
    properties.put("client.region", "us-east-1");
    properties.put("s3.access-key-id", "laneway");
    properties.put("s3.secret-access-key", "lanewaysecret");
    properties.put("adls.connection-string." + HOST, store.url() + "/" + EmbeddedStore.ACCOUNT);
    properties.put("adls.auth.shared-key.account.name", EmbeddedStore.ACCOUNT);
    properties.put("adls.auth.shared-key.account.key", EmbeddedStore.ACCOUNT_KEY);
    properties.put("gcs.service.host", store.url());
    properties.put("gcs.no-auth", "true");
    properties.put("gcs.project-id", "lake");
    return properties;
  }

  static LanewayFileIO io(EmbeddedStore store) {
    LanewayFileIO io = new LanewayFileIO();
    io.initialize(properties(store));
    return io;
  }
}
