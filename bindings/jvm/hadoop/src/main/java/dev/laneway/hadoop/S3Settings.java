package dev.laneway.hadoop;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the keys of S3A. */
final class S3Settings {
  /** AWS's own endpoints. They name only the region, so bucket names stay in the host name. */
  private static final Pattern AWS =
      Pattern.compile("(?:https?://)?s3(?:-fips)?(?:[.-]([a-z0-9-]+))?\\.amazonaws\\.com(?:\\.cn)?/?");

  /** S3A's own default (fs.s3a.bulk.delete.page.size). */
  private static final int PAGE_SIZE = 250;

  /** S3A's own default (fs.s3a.block.size). */
  private static final long BLOCK_BYTES = 32 << 20;

  /** Packages of providers whose names mean the same in all versions. */
  private static final Pattern PROVIDERS = Pattern.compile(
      "(?:org\\.apache\\.hadoop\\.fs\\.s3a|com\\.amazonaws\\.auth|software\\.amazon\\.awssdk\\.auth\\.credentials)\\.(?:\\w+\\.)*(\\w+)");

  /**
   * Providers of credentials that are found here anyway: keys in the configuration, and credentials that AWS's own
   * tools find.
   */
  private static final Set<String> FOUND = Set.of(
      "SimpleAWSCredentialsProvider",
      "TemporaryAWSCredentialsProvider",
      "IAMInstanceCredentialsProvider",
      "ProfileAWSCredentialsProvider",
      "AnonymousAWSCredentialsProvider",
      "AnonymousCredentialsProvider",
      "DefaultAWSCredentialsProviderChain",
      "DefaultCredentialsProvider",
      "EnvironmentVariableCredentialsProvider",
      "ProfileCredentialsProvider",
      "InstanceProfileCredentialsProvider",
      "EC2ContainerCredentialsProviderWrapper",
      "ContainerCredentialsProvider",
      "WebIdentityTokenCredentialsProvider",
      "WebIdentityTokenFileCredentialsProvider");

  private S3Settings() {}

  static Settings of(String bucket, Values values) throws IOException {
    Optional<String> endpoint = values.text("endpoint");
    Optional<Matcher> aws = endpoint.map(AWS::matcher).filter(Matcher::matches);
    Optional<String> url = aws.isPresent() ? Optional.empty() : endpoint.map(at -> url(at, values));
    Optional<String> region = values.text("endpoint.region").or(() -> aws.map(matched -> matched.group(1)));
    return new Settings(
        Settings.Store.S3,
        bucket,
        url,
        region,
        values.flag("path.style.access"),
        values.isOn("endpoint.fips"),
        login(values),
        values.isOn("requester.pays.enabled"),
        Optional.empty(),
        encryption(values),
        files(values));
  }

  /**
   * Returns the URL of an endpoint. It may be only a host; {@code fs.s3a.connection.ssl.enabled} then decides about
   * TLS.
   */
  private static String url(String endpoint, Values values) {
    if (endpoint.contains("://")) {
      return endpoint;
    }
    return (values.flag("connection.ssl.enabled").orElse(true) ? "https://" : "http://") + endpoint;
  }

  /**
   * Returns the configured keys, or else the credentials that the library finds. {@code
   * fs.s3a.aws.credentials.provider} names classes of other connectors, which can't be called. Only classes that mean
   * no credentials, these keys, or found credentials are recognised.
   *
   * @throws IOException for another class, such as one that assumes a role: requests would run under the wrong identity
   */
  private static Login login(Values values) throws IOException {
    List<String> providers =
        values.text("aws.credentials.provider").map(names -> Arrays.asList(names.split("\\s*,\\s*"))).orElse(List.of());
    if (providers.size() == 1 && providers.get(0).contains("Anonymous")) {
      return new Login.Anonymous();
    }
    Optional<String> id = values.secret("access.key");
    Optional<String> secret = values.secret("secret.key");
    if (id.isPresent() != secret.isPresent()) {
      throw new IOException("fs.s3a.access.key and fs.s3a.secret.key must be set together");
    }
    for (String provider : providers) {
      Matcher named = PROVIDERS.matcher(provider);
      if (!named.matches() || !FOUND.contains(named.group(1))) {
        throw new IOException("fs.s3a.aws.credentials.provider: " + provider + " can't be asked for credentials: they come"
            + " from keys in the configuration or from where AWS' own tools find them");
      }
    }
    return id.isPresent()
        ? new Login.Keys(id.get(), secret.get(), values.secret("session.token"))
        : new Login.Found();
  }

  private static Settings.Encryption encryption(Values values) throws IOException {
    Optional<String> algorithm =
        values.text("encryption.algorithm").or(() -> values.text("server-side-encryption-algorithm"));
    Optional<String> key = values.secret("encryption.key");
    if (key.isEmpty()) {
      key = values.secret("server-side-encryption.key");
    }
    return new Settings.Encryption(algorithm, key);
  }

  private static Settings.Files files(Values values) {
    boolean skipsChecks = values.isOn("create.performance")
        || values.text("performance.flags").map(flags -> Arrays.asList(flags.split("\\s*,\\s*")))
            .map(flags -> flags.contains("create") || flags.contains("*")).orElse(false);
    return new Settings.Files(
        values.bytes("block.size", BLOCK_BYTES),
        values.text("experimental.input.fadvise").flatMap(ReadPolicy::first).orElse(ReadPolicy.ADAPTIVE),
        skipsChecks,
        values.number("bulk.delete.page.size", PAGE_SIZE),
        values.text("create.storage.class").map(name -> name.toUpperCase(Locale.ROOT)),
        values.text("acl.default").map(S3Settings::acl),
        values.isOn("etag.checksum.enabled"));
  }

  /**
   * Converts S3A's ACL names, such as {@code BucketOwnerFullControl}, to S3's, such as {@code
   * bucket-owner-full-control}.
   */
  private static String acl(String name) {
    return name.replaceAll("(?<=[a-z])(?=[A-Z])", "-").toLowerCase(Locale.ROOT);
  }
}
