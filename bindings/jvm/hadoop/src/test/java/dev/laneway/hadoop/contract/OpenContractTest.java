package dev.laneway.hadoop.contract;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.fs.contract.AbstractContractOpenTest;

/** Hadoop's tests of opening files. */
class OpenContractTest extends AbstractContractOpenTest {
  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    return new ObjectStoreContract(conf);
  }
}
