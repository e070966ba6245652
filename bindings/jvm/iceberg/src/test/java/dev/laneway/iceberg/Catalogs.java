package dev.laneway.iceberg;

import dev.laneway.hadoop.EmbeddedStore;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;

/** The properties of the tests' catalogs. */
final class Catalogs {
  private Catalogs() {}

  /** Returns properties that reach a store in both dialects, named as for Iceberg's own FileIOs. */
  static Map<String, String> properties(EmbeddedStore store) {
    Map<String, String> properties = new HashMap<>();
    properties.put(CatalogProperties.FILE_IO_IMPL, LanewayFileIO.class.getName());
    properties.put("s3.endpoint", store.url());
    properties.put("s3.path-style-access", "true");
    properties.put("client.region", "us-east-1");
    properties.put("s3.access-key-id", "laneway");
    properties.put("s3.secret-access-key", "lanewaysecret");
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
