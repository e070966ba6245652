package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.LanewayException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.BulkDeleteUtils;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatistics;

/**
 * Deletes files below a path by the keys of their objects, without looking them up. A missing file counts as deleted. A
 * directory's path names no object, so directories stay, as with S3A.
 */
final class BulkDeletion implements BulkDelete {
  private final Path base;
  private final int pageSize;
  private final Bucket bucket;
  private final Keys keys;
  private final Tally tally;

  /** @throws IllegalArgumentException if the page size isn't positive */
  BulkDeletion(Path base, int pageSize, Bucket bucket, Keys keys, Tally tally) {
    if (pageSize < 1) {
      throw new IllegalArgumentException("the page size must be positive: " + pageSize);
    }
    this.base = base;
    this.pageSize = pageSize;
    this.bucket = bucket;
    this.keys = keys;
    this.tally = tally;
  }

  @Override
  public int pageSize() {
    return pageSize;
  }

  @Override
  public Path basePath() {
    return base;
  }

  @Override
  public List<Map.Entry<Path, String>> bulkDelete(Collection<Path> paths) throws IOException {
    BulkDeleteUtils.validateBulkDeletePaths(paths, pageSize, base);
    Map<String, Path> named = new LinkedHashMap<>();
    paths.forEach(path -> named.put(keys.of(path), path));
    named.remove("");
    List<Map.Entry<Path, String>> failed = new ArrayList<>();
    if (!named.isEmpty()) {
      tally.deleting(named.size());
      Map<String, LanewayException> failures =
          Failures.await(base, bucket.deleteAllAsync(List.copyOf(named.keySet())));
      failures.forEach((key, failure) -> {
        if (!failure.isNotFound()) {
          failed.add(Map.entry(named.get(key), failure.getMessage()));
        }
      });
    }
    return failed;
  }

  @Override
  public IOStatistics getIOStatistics() {
    return tally.getIOStatistics();
  }

  @Override
  public void close() {}
}
