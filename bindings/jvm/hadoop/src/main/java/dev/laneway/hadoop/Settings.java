package dev.laneway.hadoop;

import java.io.IOException;
import java.net.URI;
import java.util.Locale;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

/**
 * What Hadoop's configuration says of one filesystem: its store, the credentials, and how files are made. Keys of the S3A and GCS
 * connectors are read where their meaning is the same here; what sizes their pools, buffers and threads has no meaning here.
 *
 * @param store which store it is
 * @param bucket the bucket's name
 * @param endpoint where the store is asked, else where the library finds it
 * @param region S3's region, else found by the library
 * @param pathStyle whether buckets stand in the path of URLs instead of the host's name
 * @param fips whether AWS' FIPS endpoints are asked
 * @param login by which credentials
 * @param requesterPays whether the caller pays for requests to a bucket that wants it
 * @param userProject GCS: the project that pays
 * @param encryption how new objects are encrypted
 * @param files how files are made and looked at
 */
record Settings(
    Store store,
    String bucket,
    Optional<String> endpoint,
    Optional<String> region,
    Optional<Boolean> pathStyle,
    boolean fips,
    Login login,
    boolean requesterPays,
    Optional<String> userProject,
    Encryption encryption,
    Files files) {

  /** The stores that are asked, each by its own protocol. */
  enum Store {
    S3("s3", "fs.s3a"),
    GCS("gs", "fs.gs");

    /** The scheme of its URLs. */
    final String scheme;

    /** What the keys of its connector begin with. */
    final String family;

    Store(String scheme, String family) {
      this.scheme = scheme;
      this.family = family;
    }

    /**
     * The store that a filesystem's scheme names: {@code gs} and {@code laneway+gs}; {@code s3}, {@code s3a}, {@code s3n}, and the same
     * behind {@code laneway+}.
     *
     * @throws IOException for another scheme
     */
    static Store of(String scheme) throws IOException {
      String named = scheme.toLowerCase(Locale.ROOT);
      String plain = named.startsWith("laneway+") ? named.substring("laneway+".length()) : named;
      return switch (plain) {
        case "gs" -> GCS;
        case "s3", "s3a", "s3n" -> S3;
        default -> throw new IOException("no store is known by the scheme " + scheme);
      };
    }
  }

  /** How new objects are encrypted by the store, in its own words; what isn't there is as the bucket says. */
  record Encryption(Optional<String> algorithm, Optional<String> key) {
    static final Encryption AS_THE_BUCKET_SAYS = new Encryption(Optional.empty(), Optional.empty());
  }

  /**
   * How files are made and looked at.
   *
   * @param blockBytes how large the blocks are that files are said to have, by which jobs are cut
   * @param readPolicy how files are read where nobody says it at opening: one of {@link ReadPolicy}'s names
   * @param skipsChecks whether {@code create} leaves out looking for what is there already
   * @param pageSize how many files a bulk delete takes at once
   * @param storageClass of new objects
   * @param acl of new objects
   * @param checksums whether files show their versions as checksums
   */
  record Files(
      long blockBytes,
      ReadPolicy readPolicy,
      boolean skipsChecks,
      int pageSize,
      Optional<String> storageClass,
      Optional<String> acl,
      boolean checksums) {}

  /**
   * Reads what a configuration says of the filesystem of a URI.
   *
   * @throws IOException for a URI without a bucket, or with a secret in it; for credentials that can't be read
   */
  static Settings of(URI name, Configuration conf) throws IOException {
    Store store = Store.of(name.getScheme());
    String bucket = name.getAuthority();
    if (bucket == null || bucket.isEmpty()) {
      throw new IOException("no bucket is named in " + name);
    }
    if (bucket.contains("@")) {
      throw new IOException("a secret in the URI of a filesystem would stand in logs: it belongs into the configuration");
    }
    Values values = new Values(conf, store.family, bucket);
    return store == Store.S3 ? S3Settings.of(bucket, values) : GcsSettings.of(bucket, values);
  }
}
