package dev.laneway.hadoop.contract;

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

  /** The least that stores take of a part that isn't the last one. */
  @Override
  protected int partSizeInBytes() {
    return 5 << 20;
  }

  /** As S3A has it: ten would show no more. */
  @Override
  protected int getTestPayloadCount() {
    return 3;
  }

  /** S3 takes the same completion again for a while, and says the same of it; GCS doesn't know the upload any more. */
  @Override
  protected boolean finalizeConsumesUploadIdImmediately() {
    return isConsumed;
  }

  /** Neither knows one that was given up. */
  @Override
  @Test
  public void testMultipartUploadAbort() throws Exception {
    isConsumed = true;
    super.testMultipartUploadAbort();
  }

  @Override
  protected boolean supportsConcurrentUploadsToSamePath() {
    return true;
  }
}
