package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.LanewayException;
import dev.laneway.ObjectMeta;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.BulkDeletionFailureException;
import org.apache.iceberg.io.DelegateFileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.StorageCredential;
import org.apache.iceberg.io.SupportsStorageCredentials;
import org.apache.iceberg.util.SerializableMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads and writes Iceberg's files in Google Cloud Storage and S3, at locations with the scheme {@code gs}, {@code s3},
 * {@code s3a} or {@code s3n}. A catalog selects this class with the property {@code io-impl}. Its properties are those
 * of Iceberg's own FileIOs.
 *
 * <p>It need not be closed, and can be serialised to any number of processes. An object's key is the text after the
 * bucket in its location, byte for byte.
 */
public class LanewayFileIO implements DelegateFileIO, SupportsStorageCredentials {
  private static final Logger LOG = LoggerFactory.getLogger(LanewayFileIO.class);

  /** The maximum number of keys that are passed to the library at a time, in all buckets together. */
  private static final int KEYS_AT_ONCE = 10_000;

  private SerializableMap<String, String> properties = SerializableMap.copyOf(Map.of());

  /**
   * Credentials that the catalog issued for prefixes. The list is mutable, because Kryo can't deserialise an immutable
   * one.
   */
  private List<StorageCredential> credentials = new ArrayList<>();

  private transient volatile Map<Location.Store, FileMetrics> metrics;

  /** Called by Iceberg, which then {@linkplain #initialize initializes} it. */
  public LanewayFileIO() {}

  @Override
  public void initialize(Map<String, String> given) {
    properties = SerializableMap.copyOf(given);
    metrics = null;
    // Report bad properties here, not at the first file.
    for (Location.Store store : Location.Store.values()) {
      new StoreProperties(store, given).check();
    }
  }

  @Override
  public Map<String, String> properties() {
    return properties.immutableMap();
  }

  /**
   * Sets credentials for prefixes, which take precedence over those in the properties. This class doesn't renew them.
   * The catalog sets new ones when it loads the table again.
   */
  @Override
  public void setCredentials(List<StorageCredential> given) {
    credentials = new ArrayList<>(given);
  }

  @Override
  public List<StorageCredential> credentials() {
    return List.copyOf(credentials);
  }

  @Override
  public InputFile newInputFile(String path) {
    return newInputFile(path, -1);
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    Location location = Location.of(path);
    return new LanewayInputFile(location, bucket(location), metrics(location), length);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    Location location = Location.of(path);
    StoreProperties said = said(location);
    return new LanewayOutputFile(location, Buckets.of(location.bucket(), said), said.described(), metrics(location));
  }

  /** Deletes a file. A missing file counts as deleted. */
  @Override
  public void deleteFile(String path) {
    Location location = Location.of(path);
    StoreProperties said = said(location);
    if (!said.deletes()) {
      return;
    }
    try {
      Failures.await(path, Buckets.of(location.bucket(), said).deleteAsync(location.key()));
    } catch (NotFoundException gone) {
      LOG.debug("{} didn't exist", path);
    }
  }

  /**
   * Deletes files in as few requests as the store allows, in all buckets at once. Missing files count as deleted.
   *
   * @throws BulkDeletionFailureException with the number of files that could not be deleted
   */
  @Override
  public void deleteFiles(Iterable<String> paths) throws BulkDeletionFailureException {
    int failed = 0;
    int batched = 0;
    Map<Bucket, List<String>> batches = new HashMap<>();
    for (String path : paths) {
      Location location = Location.of(path);
      StoreProperties said = said(location);
      if (said.deletes()) {
        batches.computeIfAbsent(Buckets.of(location.bucket(), said), bucket -> new ArrayList<>()).add(location.key());
        batched++;
      }
      if (batched == KEYS_AT_ONCE) {
        failed += delete(batches);
        batches.clear();
        batched = 0;
      }
    }
    failed += delete(batches);
    if (failed > 0) {
      throw new BulkDeletionFailureException(failed);
    }
  }

  /**
   * Returns the files whose locations begin with the prefix, in the order of their keys, while pages arrive. Leaves out
   * markers of directories.
   */
  @Override
  public Iterable<FileInfo> listPrefix(String prefix) {
    Location location = Location.of(prefix);
    Bucket bucket = bucket(location);
    return () -> Listed.of(location, bucket);
  }

  /** Deletes all files whose locations begin with the prefix, while the listing still runs. */
  @Override
  public void deletePrefix(String prefix) {
    Location location = Location.of(prefix);
    StoreProperties said = said(location);
    if (!said.deletes()) {
      return;
    }
    Bucket bucket = Buckets.of(location.bucket(), said);
    int failed = 0;
    try (Stream<ObjectMeta> objects = bucket.list(location.key())) {
      Iterator<ObjectMeta> next = objects.iterator();
      while (next.hasNext()) {
        List<String> some = new ArrayList<>();
        while (some.size() < KEYS_AT_ONCE && next.hasNext()) {
          some.add(next.next().key());
        }
        failed += delete(Map.of(bucket, some));
      }
    } catch (UncheckedIOException unlisted) {
      throw Failures.of(prefix, unlisted.getCause());
    }
    if (failed > 0) {
      throw new BulkDeletionFailureException(failed);
    }
  }

  /** Does nothing, because other FileIOs with the same properties share the connections. */
  @Override
  public void close() {}

  /** Shows names only, because some values are secrets. */
  @Override
  public String toString() {
    return "LanewayFileIO" + properties.keySet();
  }

  private Bucket bucket(Location location) {
    return Buckets.of(location.bucket(), said(location));
  }

  /** Returns the settings of a location: the properties, with the credentials of the longest prefix that matches. */
  private StoreProperties said(Location location) {
    StorageCredential closest = null;
    for (StorageCredential credential : credentials) {
      boolean isCloser = closest == null || credential.prefix().length() > closest.prefix().length();
      if (location.text().startsWith(credential.prefix()) && isCloser) {
        closest = credential;
      }
    }
    if (closest == null) {
      return new StoreProperties(location, properties);
    }
    Map<String, String> all = new TreeMap<>(properties);
    all.putAll(closest.config());
    return new StoreProperties(location, all);
  }

  private FileMetrics metrics(Location location) {
    Map<Location.Store, FileMetrics> known = metrics;
    if (known == null) {
      known = new ConcurrentHashMap<>();
      metrics = known;
    }
    return known.computeIfAbsent(location.store(), store -> FileMetrics.of(store.family, properties));
  }

  /** Deletes keys of several buckets. Returns how many of them could not be deleted. */
  private static int delete(Map<Bucket, List<String>> batches) {
    Map<Bucket, CompletableFuture<Map<String, LanewayException>>> under = new HashMap<>();
    batches.forEach((bucket, keys) -> under.put(bucket, bucket.deleteAllAsync(keys)));
    int left = 0;
    try {
      for (Map.Entry<Bucket, CompletableFuture<Map<String, LanewayException>>> one : under.entrySet()) {
        String url = one.getKey().url();
        for (Map.Entry<String, LanewayException> failure : Failures.await(url, one.getValue()).entrySet()) {
          if (!failure.getValue().isNotFound()) {
            LOG.warn("{}{} was not deleted", url, failure.getKey(), failure.getValue());
            left++;
          }
        }
      }
    } finally {
      under.values().forEach(one -> one.cancel(true));
    }
    return left;
  }
}
