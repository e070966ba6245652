package dev.laneway.hadoop;

/**
 * The schemes of this library alone, for which Hadoop finds the filesystem by itself. Other schemes, such as {@code
 * s3a}, need configuration, so this module's presence changes nothing.
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
