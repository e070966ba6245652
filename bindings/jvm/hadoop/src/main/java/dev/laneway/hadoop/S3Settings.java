package dev.laneway.hadoop;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the keys of S3A. */
final class S3Settings {
  /** AWS's own endpoints. They tell Laneway only the region, so bucket names stay in the host name. */
  private static final Pattern AWS =
      Pattern.compile("(?:https?://)?s3(?:-fips)?(?:[.-]([a-z0-9-]+))?\\.amazonaws\\.com(?:\\.cn)?/?");

  /** S3A's own default (fs.s3a.bulk.delete.page.size). */
  private static final int PAGE_SIZE = 250;

  /** S3A's own default (fs.s3a.block.size). */
  private static final long BLOCK_BYTES = 32 << 20;

  private S3Settings() {}

  static Settings of(String bucket, Values values, Settings.Engine engine) throws IOException {
    Optional<String> endpoint = values.text("endpoint");
    Optional<Matcher> aws = endpoint.map(AWS::matcher).filter(Matcher::matches);
    Optional<String> url = aws.isPresent() ? Optional.empty() : endpoint.map(at -> url(at, values));
    Optional<String> region = values.text("endpoint.region").or(() -> aws.map(matched -> matched.group(1)));
    return new Settings(
        Settings.Store.S3,
        accessPoint(values).orElse(bucket),
        url,
        region,
        Optional.empty(),
        values.flag("path.style.access"),
        values.isOn("endpoint.fips"),
        S3Login.of(values, System.getenv()),
        proxy(values),
        Map.of(),
        values.isOn("requester.pays.enabled"),
        Optional.empty(),
        encryption(values),
        files(values),
        engine);
  }

  /**
   * Returns the URL of an endpoint. If the endpoint is only a host, {@code fs.s3a.connection.ssl.enabled} decides about
   * TLS.
   */
  private static String url(String endpoint, Values values) {
    if (endpoint.contains("://")) {
      return endpoint;
    }
    return (values.flag("connection.ssl.enabled").orElse(true) ? "https://" : "http://") + endpoint;
  }

  /** Returns the URL of the bucket's access point, if it has one. */
  private static Optional<String> accessPoint(Values values) throws IOException {
    Optional<String> arn = values.text("accesspoint.arn");
    if (arn.isEmpty() && values.isOn("accesspoint.required")) {
      throw new IOException("fs.s3a.accesspoint.required is true, and no fs.s3a.bucket.NAME.accesspoint.arn names the"
          + " access point of this bucket");
    }
    return arn;
  }

  /**
   * Returns the proxy.
   *
   * @throws IOException if only a part of it is set
   */
  private static Optional<Settings.Proxy> proxy(Values values) throws IOException {
    Optional<String> host = values.text("proxy.host");
    if (host.isEmpty()) {
      if (values.text("proxy.port").isPresent()) {
        throw new IOException("fs.s3a.proxy.port is set without fs.s3a.proxy.host");
      }
      return Optional.empty();
    }
    boolean isTls = values.isOn("proxy.ssl.enabled");
    int port = values.number("proxy.port", values.flag("connection.ssl.enabled").orElse(true) ? 443 : 80);
    Optional<String> user = values.secret("proxy.username");
    Optional<String> password = values.secret("proxy.password");
    if (user.isPresent() != password.isPresent()) {
      throw new IOException("fs.s3a.proxy.username and fs.s3a.proxy.password must be set together");
    }
    return Optional.of(new Settings.Proxy(isTls ? "https://" : "http://", host.get() + ":" + port, user, password));
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
        values.text("object.content.encoding"),
        values.isOn("etag.checksum.enabled"),
        Optional.empty());
  }

  /**
   * Converts S3A's ACL names, such as {@code BucketOwnerFullControl}, to S3's, such as {@code
   * bucket-owner-full-control}.
   */
  private static String acl(String name) {
    return name.replaceAll("(?<=[a-z])(?=[A-Z])", "-").toLowerCase(Locale.ROOT);
  }
}
