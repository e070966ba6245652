package dev.laneway.hadoop.contract;

import dev.laneway.hadoop.EmbeddedStore;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractBondedFSContract;

/**
 * The properties of the filesystem for Hadoop's contract tests. {@code contract/object-store.xml} lists them, and gives
 * the reason for each property that is missing. The system property {@code laneway.contract.scheme} selects the scheme,
 * {@code gs}, {@code s3a} or {@code abfss}. With {@code laneway.contract.impl.SCHEME} the tests run another connector's class, for the
 * table in README.md.
 */
final class ObjectStoreContract extends AbstractBondedFSContract {
  private static final String BUCKET = "contract";

  static final String SCHEME = System.getProperty("laneway.contract.scheme", "gs");

  private final String scheme = SCHEME;

  ObjectStoreContract(Configuration conf) {
    super(conf);
    EmbeddedStore.with(BUCKET).configure(conf);
    conf.setInt("fs." + scheme + ".bulk.delete.page.size", 20);
    String other = System.getProperty("laneway.contract.impl." + scheme, "");
    if (!other.isEmpty()) {
      conf.set("fs." + scheme + ".impl", other);
      // Since 3.5, Hadoop's own defaults have names and forms that Google's connector doesn't know.
      conf.setLong("fs.gs.block.size", 64 << 20);
      conf.setLong("fs.gs.outputstream.buffer.size", 8 << 20);
      conf.setLong("fs.gs.inputstream.inplace.seek.limit", 8 << 20);
      conf.setLong("fs.gs.inputstream.min.range.request.size", 2 << 20);
      conf.setBoolean("fs.gs.auth.null.enable", true);
      conf.setBoolean("fs.gs.auth.service.account.enable", false);
      conf.set("fs.gs.project.id", "laneway");
    }
    addConfResource("contract/object-store.xml");
  }

  @Override
  public String loadFilesystemName(String named) {
    return named + "://" + BUCKET;
  }

  @Override
  public String getScheme() {
    return scheme;
  }
}
