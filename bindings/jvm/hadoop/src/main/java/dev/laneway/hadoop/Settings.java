package dev.laneway.hadoop;

import dev.laneway.AzureContainer;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

/**
 * The configuration of one filesystem: its store, the credentials, and how files are written. It reads those keys of
 * the connectors for S3, GCS and Azure that mean the same for Laneway. It ignores sizes of pools, buffers and threads.
 *
 * @param store The kind of store.
 * @param bucket The bucket's name, the ARN of its access point, or Azure's {@code container@host}.
 * @param endpoint The store's endpoint, or empty for the library's default.
 * @param region S3's region, or empty if the library must find it.
 * @param account Azure's storage account, or empty if the environment names it.
 * @param pathStyle True if bucket names are in the path of URLs instead of the host name.
 * @param fips True for AWS's FIPS endpoints.
 * @param login The credentials.
 * @param proxy The proxy of all requests.
 * @param headers Headers of all requests.
 * @param requesterPays True if the caller pays for requests to requester-pays buckets.
 * @param userProject The project that GCS bills.
 * @param encryption The encryption of new objects.
 * @param files The settings for writing and looking up files.
 * @param engine The limits of the process's engine.
 */
record Settings(
    Store store,
    String bucket,
    Optional<String> endpoint,
    Optional<String> region,
    Optional<String> account,
    Optional<Boolean> pathStyle,
    boolean fips,
    Login login,
    Optional<Proxy> proxy,
    Map<String, String> headers,
    boolean requesterPays,
    Optional<String> userProject,
    Encryption encryption,
    Files files,
    Engine engine) {

  /** The supported stores, each with its own protocol. */
  enum Store {
    S3("s3", "fs.s3a"),
    GCS("gs", "fs.gs"),
    AZURE("az", "fs.azure");

    /** The scheme of its URLs. */
    final String scheme;

    /** The beginning of its connector's keys. */
    final String family;

    Store(String scheme, String family) {
      this.scheme = scheme;
      this.family = family;
    }

    /**
     * Returns the store of a filesystem's scheme: {@code gs}; {@code s3}, {@code s3a}, {@code s3n}; {@code az}, {@code
     * abfs}, {@code abfss}, {@code wasb}, {@code wasbs}; and the same with {@code laneway+} in front.
     *
     * @throws IOException for another scheme
     */
    static Store of(String scheme) throws IOException {
      String named = scheme.toLowerCase(Locale.ROOT);
      String plain = named.startsWith("laneway+") ? named.substring("laneway+".length()) : named;
      return switch (plain) {
        case "gs" -> GCS;
        case "s3", "s3a", "s3n" -> S3;
        case "az", "abfs", "abfss", "wasb", "wasbs" -> AZURE;
        default -> throw new IOException("no store is known by the scheme " + scheme);
      };
    }
  }

  /**
   * A proxy.
   *
   * @param scheme the protocol on the way to the proxy: {@code http://} or {@code https://}
   * @param at the proxy's host and port
   */
  record Proxy(String scheme, String at, Optional<String> user, Optional<String> password) {
    /** Returns its URL. */
    String url() {
      return scheme + user.map(name -> encoded(name) + ":" + encoded(password.orElse("")) + "@").orElse("") + at;
    }

    private static String encoded(String text) {
      return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    @Override
    public String toString() {
      return "Proxy[" + scheme + at + "]";
    }
  }

  /** The encryption of new objects, under the store's own names. For an empty value, the bucket's setting applies. */
  record Encryption(Optional<String> algorithm, Optional<String> key) {
    @Override
    public String toString() {
      return "Encryption" + algorithm;
    }
  }

  /**
   * Settings for writing and looking up files.
   *
   * @param blockBytes The size of the blocks that files report. Jobs split files at these blocks.
   * @param readPolicy The default way of reading files.
   * @param skipsChecks True if {@code create} doesn't look up existing files.
   * @param pageSize The maximum number of files in a bulk delete.
   * @param storageClass The storage class of new objects.
   * @param acl The ACL of new objects.
   * @param contentEncoding The content encoding of new objects.
   * @param checksums True if files show their versions as checksums.
   * @param workingDirectory The directory of relative paths, if it isn't the user's.
   */
  record Files(
      long blockBytes,
      ReadPolicy readPolicy,
      boolean skipsChecks,
      int pageSize,
      Optional<String> storageClass,
      Optional<String> acl,
      Optional<String> contentEncoding,
      boolean checksums,
      Optional<String> workingDirectory) {}

  /**
   * Limits of the engine that a process's filesystems share. The first client of a process sets them.
   *
   * @param memory The maximum number of bytes in buffers.
   * @param connections The maximum number of connections.
   * @param bandwidth The maximum number of bytes per second.
   */
  record Engine(Optional<Long> memory, Optional<Integer> connections, Optional<Long> bandwidth) {
    static Engine of(Configuration conf) throws IOException {
      return new Engine(
          limit(conf, "fs.laneway.memory"),
          limit(conf, "fs.laneway.connections.maximum").map(Math::toIntExact),
          limit(conf, "fs.laneway.bandwidth.limit"));
    }

    private static Optional<Long> limit(Configuration conf, String key) throws IOException {
      long limit = Values.bytes(conf, key, 0);
      if (limit < 0 || (limit == 0 && !conf.getTrimmed(key, "").isEmpty())) {
        throw new IOException(key + " must be positive, and is " + conf.getTrimmed(key));
      }
      return limit == 0 ? Optional.empty() : Optional.of(limit);
    }
  }

  /**
   * Reads the configuration for the filesystem of a URI.
   *
   * @throws IOException For a URI without a bucket or with a secret, and for unreadable credentials. Also for an
   *     unsupported key that may change the identity of requests.
   */
  static Settings of(URI name, Configuration conf) throws IOException {
    Store store = Store.of(name.getScheme());
    String bucket = name.getAuthority();
    if (bucket == null || bucket.isEmpty()) {
      throw new IOException("no bucket is named in " + name);
    }
    if (store == Store.AZURE) {
      AzureContainer container = AzureContainer.of(bucket);
      if (container.name().isEmpty() || container.name().contains(":")) {
        throw new IOException("the part before @ in the URI of a filesystem of Azure must be the name of a container");
      }
      Values values = Values.ofAccount(conf, store.family, AzureSettings.endings(container));
      KeyRules.check(store, values, conf);
      return AzureSettings.of(container, values, Engine.of(conf));
    }
    if (bucket.contains("@")) {
      throw new IOException("a secret in a filesystem's URI would appear in logs: put it into the configuration");
    }
    Values values = new Values(conf, store.family, bucket);
    KeyRules.check(store, values, conf);
    Engine engine = Engine.of(conf);
    return store == Store.S3 ? S3Settings.of(bucket, values, engine) : GcsSettings.of(bucket, values, engine);
  }

  /** Returns only the bucket's URL. Some of the settings are secrets, such as headers. */
  @Override
  public String toString() {
    return "Settings[" + store.scheme + "://" + bucket + "]";
  }
}
