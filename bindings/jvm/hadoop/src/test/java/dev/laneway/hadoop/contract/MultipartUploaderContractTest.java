package dev.laneway.hadoop.contract;

import static org.junit.jupiter.api.Assumptions.assumeFalse;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractContractMultipartUploaderTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.junit.jupiter.api.Test;

/** Hadoop's tests of uploads in parts. */
class MultipartUploaderContractTest extends AbstractContractMultipartUploaderTest {
  private boolean isConsumed;

  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    ObjectStoreContract contract = new ObjectStoreContract(conf);
    isConsumed = contract.getScheme().equals("gs");
    return contract;
  }

  /** The smallest part that stores accept, except for the last one. */
  @Override
  protected int partSizeInBytes() {
    return 5 << 20;
  }

  /** The number is the same as in S3A's test. More parts would test nothing further. */
  @Override
  protected int getTestPayloadCount() {
    return 3;
  }

  /** For a while, S3 accepts a repeated completion, with the same result. GCS no longer knows a completed upload. */
  @Override
  protected boolean finalizeConsumesUploadIdImmediately() {
    return isConsumed;
  }

  /** GCS and S3 forget an aborted upload at once. Azure keeps its blocks for a week, so that it could still be completed. */
  @Override
  @Test
  public void testMultipartUploadAbort() throws Exception {
    assumeFalse(ObjectStoreContract.SCHEME.equals("abfss"));
    isConsumed = true;
    super.testMultipartUploadAbort();
  }

  /** A repeated completion makes another version on Azure. Hadoop's test expects the same version or a failure. */
  @Override
  @Test
  public void testSingleUpload() throws Exception {
    assumeFalse(ObjectStoreContract.SCHEME.equals("abfss"));
    super.testSingleUpload();
  }

  /** On Azure, the upload that ends first discards the blocks of all others to the same path. */
  @Override
  protected boolean supportsConcurrentUploadsToSamePath() {
    return !ObjectStoreContract.SCHEME.equals("abfss");
  }
}
