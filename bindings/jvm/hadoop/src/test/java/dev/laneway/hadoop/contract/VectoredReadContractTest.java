package dev.laneway.hadoop.contract;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractContractVectoredReadTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Hadoop's tests of reading ranges together, into direct buffers and arrays. */
@ParameterizedClass(name = "buffer-{0}")
@MethodSource("params")
class VectoredReadContractTest extends AbstractContractVectoredReadTest {
  VectoredReadContractTest(String buffers) {
    super(buffers);
  }

  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    return new ObjectStoreContract(conf);
  }
}
