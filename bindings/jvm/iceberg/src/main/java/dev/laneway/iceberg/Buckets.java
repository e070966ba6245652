package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Keeps the buckets of the process. All {@link LanewayFileIO}s with the same settings share one bucket object. A task
 * deserialises its FileIO, uses it for a file or two, and never closes it. So a new FileIO must not load credentials
 * again.
 */
final class Buckets {
  /**
   * The maximum number of buckets that are kept; the least recently used is dropped first. Some catalogs issue new
   * credentials each hour, which need new buckets.
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
    String url = properties.url(name);
    // A bucket can still be used after its client is closed.
    try (Laneway laneway = properties.client()) {
      return laneway.bucket(url);
    } catch (LanewayException failed) {
      throw Failures.of(url, failed);
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
