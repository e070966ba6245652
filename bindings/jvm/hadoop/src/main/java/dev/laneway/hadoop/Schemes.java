package dev.laneway.hadoop;

/**
 * The schemes that only this library has, so Hadoop finds the filesystem without configuration. For other schemes, such
 * as {@code s3a}, Laneway must be configured. Having this module on the class path doesn't change them.
 */
public final class Schemes {
  private Schemes() {}

  /** The filesystem of {@code laneway+gs://bucket}. */
  public static final class Gs extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+gs";
    }
  }

  /** The filesystem of {@code laneway+abfs://container@host}. */
  public static final class Abfs extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+abfs";
    }
  }

  /** The filesystem of {@code laneway+abfss://container@host}, which is the same as {@code laneway+abfs}. */
  public static final class Abfss extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+abfss";
    }
  }

  /** The filesystem of {@code laneway+s3://bucket}. */
  public static final class S3 extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+s3";
    }
  }

  /** The filesystem of {@code laneway+s3a://bucket}, which is the same as {@code laneway+s3}. */
  public static final class S3a extends LanewayFileSystem {
    @Override
    public String getScheme() {
      return "laneway+s3a";
    }
  }
}
