package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Buckets of the process, one for all {@link LanewayFileIO}s that say the same of it: a task's FileIO comes out of its bytes, is used for a file or two and is never
 * closed, and is not to look for credentials anew.
 */
final class Buckets {
  /** Catalogs that hand out credentials make new ones each hour; those that were used least recently are let go of. */
  private static final int BUCKETS_MAX = 256;

  private static final Map<Key, Bucket> OPEN = new LinkedHashMap<>(16, 0.75f, true) {
    @Override
    protected boolean removeEldestEntry(Map.Entry<Key, Bucket> eldest) {
      return size() > BUCKETS_MAX;
    }
  };

  private Buckets() {}

  /** A bucket by properties. Nothing is asked of the store. */
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
    // What comes of a client stays when that is closed.
    try (Laneway laneway = properties.client()) {
      return laneway.bucket(scheme + name + "/");
    } catch (LanewayException failed) {
      throw Failures.of(scheme + name, failed);
    }
  }

  private record Key(String bucket, Location.Store store, Map<String, String> said) {
    /** Values may be secrets. */
    @Override
    public String toString() {
      return "Key[" + store + ", " + bucket + ", " + said.keySet() + "]";
    }
  }
}
