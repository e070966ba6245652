package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.Counters;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import dev.laneway.PutOptions;
import java.io.Closeable;
import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.fs.Path;

/** The client and bucket of a filesystem, with the settings of its configuration. */
final class Connection implements Closeable {
  /** The maximum number of shared connections. If there are more, the least recently used one is dropped. */
  private static final int SHARED_MAX = 256;

  private static final Map<Settings, Connection> SHARED = new LinkedHashMap<>(16, 0.75f, true) {
    @Override
    protected boolean removeEldestEntry(Map.Entry<Settings, Connection> eldest) {
      return size() > SHARED_MAX;
    }
  };

  private final Laneway laneway;
  private final Bucket bucket;
  private final PutOptions described;

  private Connection(Laneway laneway, Bucket bucket, PutOptions described) {
    this.laneway = laneway;
    this.bucket = bucket;
    this.described = described;
  }

  /**
   * Makes a connection. Sends no request.
   *
   * @throws IOException for settings that Laneway refuses
   */
  static Connection of(Settings settings) throws IOException {
    String url = settings.store().scheme + "://" + settings.bucket() + "/";
    Laneway laneway;
    try {
      laneway = builder(settings).build();
    } catch (LanewayException refused) {
      throw Failures.of(new Path(url), refused);
    }
    Bucket bucket = laneway.bucket(url);
    PutOptions described = PutOptions.NONE;
    if (settings.files().storageClass().isPresent()) {
      described = described.storageClass(settings.files().storageClass().get());
    }
    if (settings.files().acl().isPresent()) {
      described = described.acl(settings.files().acl().get());
    }
    if (settings.files().contentEncoding().isPresent()) {
      described = described.contentEncoding(settings.files().contentEncoding().get());
    }
    return new Connection(laneway, bucket, described);
  }

  /**
   * Returns the connection that all users of equal settings share. A shared connection needs no closing.
   *
   * @throws IOException for settings that Laneway refuses
   */
  static Connection shared(Settings settings) throws IOException {
    synchronized (SHARED) {
      Connection shared = SHARED.get(settings);
      if (shared == null) {
        shared = of(settings);
        // A bucket still works after its client is closed.
        shared.close();
        SHARED.put(settings, shared);
      }
      return shared;
    }
  }

  /** Returns the bucket. Its keys are the paths without their leading slash. */
  Bucket bucket() {
    return bucket;
  }

  /** Returns the options for every new object, such as its storage class. */
  PutOptions described() {
    return described;
  }

  /** Returns the counts of the process's engine so far; empty once the client is closed. */
  Optional<Counters> counters() {
    try {
      return Optional.of(laneway.counters());
    } catch (IllegalStateException closed) {
      return Optional.empty();
    }
  }

  @Override
  public void close() {
    laneway.close();
  }

  static Laneway.Builder builder(Settings settings) throws IOException {
    boolean isS3 = settings.store() == Settings.Store.S3;
    Laneway.Builder builder = Laneway.builder().userAgentSuffix("laneway-hadoop");
    logIn(builder, settings.login());
    switch (settings.store()) {
      case S3 -> settings.endpoint().ifPresent(builder::s3Endpoint);
      case GCS -> settings.endpoint().ifPresent(builder::gcsEndpoint);
      case AZURE -> settings.endpoint().ifPresent(builder::azureEndpoint);
    }
    settings.account().ifPresent(builder::azureAccount);
    settings.region().ifPresent(builder::region);
    settings.pathStyle().ifPresent(builder::s3PathStyle);
    settings.userProject().ifPresent(builder::userProject);
    if (isS3 && settings.requesterPays()) {
      builder.requestPayer(true);
    }
    if (settings.fips()) {
      builder.s3Fips(true);
    }
    encrypt(builder, settings.encryption());
    if (settings.proxy().isPresent()) {
      String proxy = settings.proxy().get().url();
      builder.httpProxy(proxy).httpsProxy(proxy);
    }
    settings.headers().forEach(builder::header);
    settings.engine().memory().ifPresent(builder::memory);
    settings.engine().connections().ifPresent(builder::connectionsMax);
    settings.engine().bandwidth().ifPresent(builder::bandwidthLimit);
    return builder;
  }

  /** Sets the credentials, and the environment variables that the client reads. */
  private static void logIn(Laneway.Builder builder, Login login) {
    if (login instanceof Login.Role role) {
      builder.assumeRole(role.role());
      logIn(builder, role.base());
      return;
    }
    if (login instanceof Login.Impersonated impersonated) {
      builder.impersonate(List.of(impersonated.account()));
      logIn(builder, impersonated.base());
      return;
    }
    if (login instanceof Login.Found found && !found.variables().isEmpty()) {
      Map<String, String> variables = new HashMap<>(System.getenv());
      variables.putAll(found.variables());
      builder.fromVariables(variables);
      return;
    }
    builder.fromEnvironment();
    if (login instanceof Login.Anonymous) {
      builder.anonymous(true);
    } else if (login instanceof Login.Keys keys) {
      builder.accessKey(keys.id(), keys.secret());
      keys.token().ifPresent(builder::sessionToken);
    } else if (login instanceof Login.Azure azure) {
      builder.azureCredentials(azure.parts());
    } else if (login instanceof Login.ServiceAccount account) {
      builder.serviceAccountKey(account.json());
    }
  }

  /**
   * Sets the encryption. S3A's names AES256, SSE-KMS, DSSE-KMS and SSE-C mean S3's own kinds. The GCS connector's
   * AES256 means a customer's own key.
   */
  private static void encrypt(Laneway.Builder builder, Settings.Encryption encryption) throws IOException {
    if (encryption.algorithm().isEmpty()) {
      return;
    }
    String algorithm = encryption.algorithm().get();
    switch (algorithm) {
      case "AES256" -> {
        if (encryption.key().isPresent()) {
          builder.customerKey(encryption.key().get());
        } else {
          builder.sse("AES256");
        }
      }
      case "SSE-KMS" -> {
        builder.sse("aws:kms");
        encryption.key().ifPresent(builder::kmsKey);
      }
      case "DSSE-KMS" -> {
        builder.sse("aws:kms:dsse");
        encryption.key().ifPresent(builder::kmsKey);
      }
      case "SSE-C" -> builder.customerKey(
          encryption.key().orElseThrow(() -> new IOException("SSE-C needs a key in fs.s3a.encryption.key")));
      default -> throw new IOException("the encryption algorithm " + algorithm + " isn't supported");
    }
  }
}
