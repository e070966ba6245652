package dev.laneway.hadoop;

/**
 * The schemes that are this library's alone, for which Hadoop finds the filesystem by itself. Those of others, such as {@code s3a}, are taken
 * by configuration, so that nothing changes by this module's being there.
 */
public final class Schemes {
  private Schemes() {}

  /** {@code laneway+gs://bucket}. */
  public static final class Gs extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+gs";
    }
  }

  /** {@code laneway+s3://bucket}. */
  public static final class S3 extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+s3";
    }
  }

  /** {@code laneway+s3a://bucket}, which is the same. */
  public static final class S3a extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+s3a";
    }
  }
}
