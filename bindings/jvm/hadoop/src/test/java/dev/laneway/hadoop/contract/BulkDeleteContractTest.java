package dev.laneway.hadoop.contract;

import static org.apache.hadoop.io.wrappedio.WrappedIO.bulkDelete_delete;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractContractBulkDeleteTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.fs.contract.ContractTestUtils;
import org.junit.jupiter.api.Test;

/**
 * Hadoop's tests of deleting many files at once. Two of them expect a failure for the name of a directory that isn't
 * empty. The interface leaves the treatment of directories undefined, and checking each name would cost a request for
 * each file. As with S3A, such a name deletes nothing, and the directory stays.
 */
class BulkDeleteContractTest extends AbstractContractBulkDeleteTest {
  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    return new ObjectStoreContract(conf);
  }

  @Override
  protected int getExpectedPageSize() {
    // hadoop-azure has no key for the size of a page.
    return ObjectStoreContract.SCHEME.equals("abfss") ? 256 : 20;
  }

  @Override
  @Test
  public void testBulkDeleteParentDirectoryWithDirectories() throws Exception {
    Path directory = new Path(basePath, "dir");
    fs.mkdirs(new Path(directory, "subdir"));
    assertSuccessfulBulkDelete(bulkDelete_delete(fs, basePath, List.of(directory)));
    assertIsDirectory(new Path(directory, "subdir"));
  }

  @Override
  @Test
  public void testBulkDeleteParentDirectoryWithFiles() throws Exception {
    Path directory = new Path(basePath, "dir");
    ContractTestUtils.touch(fs, new Path(directory, "file"));
    assertSuccessfulBulkDelete(bulkDelete_delete(fs, basePath, List.of(directory)));
    assertIsFile(new Path(directory, "file"));
  }
}
