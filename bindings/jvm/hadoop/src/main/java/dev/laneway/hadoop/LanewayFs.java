package dev.laneway.hadoop;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

/**
 * {@link LanewayFileSystem} for users of Hadoop's FileContext: YARN, and Spark's streaming checkpoints. Hadoop never
 * closes such a filesystem. So all such filesystems of a process with equal settings share one client.
 */
public class LanewayFs extends DelegateToFileSystem {
  /** Called by Hadoop for the filesystem of a URI. */
  public LanewayFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new LanewayFileSystem(true), conf, uri.getScheme(), false);
  }

  /** Buckets have no ports. */
  @Override
  public int getUriDefaultPort() {
    return -1;
  }
}
