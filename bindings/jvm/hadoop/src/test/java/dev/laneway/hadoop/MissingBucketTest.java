package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** A bucket that doesn't exist isn't treated as an empty bucket. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class MissingBucketTest {
  private final Configuration conf = EmbeddedStore.with("lake").configuration();
  private final FileSystem files;
  private final String root;

  MissingBucketTest(String scheme) throws IOException {
    root = scheme + "://nowhere/";
    files = EmbeddedStore.open(root, conf);
  }

  @AfterEach
  void close() throws IOException {
    files.close();
  }

  @Test
  void eachOperationSaysThatTheBucketIsMissing() {
    Path path = new Path(root + "a/b");
    Map<String, Executable> operations = new TreeMap<>();
    for (Path at : List.of(path, new Path(root))) {
      operations.put("exists " + at, () -> files.exists(at));
      operations.put("getFileStatus " + at, () -> files.getFileStatus(at));
      operations.put("listStatus " + at, () -> files.listStatus(at));
      operations.put("listFiles " + at, () -> files.listFiles(at, true).hasNext());
      operations.put("getContentSummary " + at, () -> files.getContentSummary(at));
      operations.put("delete " + at, () -> files.delete(at, true));
    }
    operations.put("open", () -> files.open(path).read());
    operations.put("create", () -> files.create(path).close());
    operations.put("mkdirs", () -> files.mkdirs(path));
    operations.put("rename", () -> files.rename(path, new Path(root + "c")));
    operations.forEach((name, operation) -> {
      IOException missing = assertThrows(UnknownStoreException.class, operation, name);
      assertTrue(missing.getMessage().startsWith(root), () -> name + ": " + missing.getMessage());
    });
  }

  @Test
  void aFileThatIsCreatedWithoutALookFailsAtItsEnd() throws IOException {
    assumeFalse(root.startsWith("abfss:"), "hadoop-azure has no key that leaves out the look");
    conf.setBoolean("fs.s3a.create.performance", true);
    conf.setBoolean("fs.gs.create.items.conflict.check.enable", false);
    try (FileSystem unchecked = EmbeddedStore.open(root, conf)) {
      var out = unchecked.create(new Path("/a"), true);
      out.write(1);
      assertThrows(UnknownStoreException.class, out::close);
    }
  }

  @Test
  void aBulkDeletionNamesEachFileAsNotDeleted() throws IOException {
    Path path = new Path(root + "a");
    try (BulkDelete deletion = files.createBulkDelete(new Path(root))) {
      List<Map.Entry<Path, String>> failed = deletion.bulkDelete(List.of(path));
      assertTrue(failed.size() == 1 && failed.get(0).getKey().equals(path), failed::toString);
    } catch (UnknownStoreException missing) {
      // The whole call may fail instead.
    }
  }
}
