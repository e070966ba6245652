package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Buckets of the process. All {@link LanewayFileIO}s with the same settings share one. A task deserialises its FileIO,
 * uses it for a file or two and never closes it, so it must not look for credentials each time.
 */
final class Buckets {
  /**
   * The most buckets that are kept. Catalogs that hand out credentials make new ones each hour, and the least recently
   * used are dropped.
   */
  private static final int BUCKETS_MAX = 256;

  private static final Map<Key, Bucket> OPEN = new LinkedHashMap<>(16, 0.75f, true) {
    @Override
    protected boolean removeEldestEntry(Map.Entry<Key, Bucket> eldest) {
      return size() > BUCKETS_MAX;
    }
  };

  private Buckets() {}

  /** Returns the bucket for some properties. Sends no request. */
  static Bucket of(String name, StoreProperties properties) {
    Key key = new Key(name, properties.store(), properties.said());
    synchronized (OPEN) {
      Bucket open = OPEN.get(key);
      if (open == null) {
        open = open(name, properties);
        OPEN.put(key, open);
      }
      return open;
    }
  }

  private static Bucket open(String name, StoreProperties properties) {
    String scheme = properties.store() == Location.Store.S3 ? "s3://" : "gs://";
    // A bucket outlives the closing of its client.
    try (Laneway laneway = properties.client()) {
      return laneway.bucket(scheme + name + "/");
    } catch (LanewayException failed) {
      throw Failures.of(scheme + name, failed);
    }
  }

  private record Key(String bucket, Location.Store store, Map<String, String> said) {
    /** Leaves out values, which may be secrets. */
    @Override
    public String toString() {
      return "Key[" + store + ", " + bucket + ", " + said.keySet() + "]";
    }
  }
}
