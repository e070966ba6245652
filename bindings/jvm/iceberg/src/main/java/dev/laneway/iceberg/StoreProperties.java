package dev.laneway.iceberg;

import dev.laneway.AzureContainer;
import dev.laneway.CredentialProvider;
import dev.laneway.Laneway;
import dev.laneway.LanewayException;
import dev.laneway.PutOptions;
import java.time.Instant;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.exceptions.ValidationException;

/**
 * A catalog's properties for a store, with the names of Iceberg's S3FileIO, GCSFileIO and ADLSFileIO. Sizes of parts and pools,
 * numbers of threads, and retries are ignored, because Laneway chooses them itself. Properties that aren't supported
 * and would change the identity or the destination of requests are refused.
 */
final class StoreProperties {
  /** The prefixes of the properties that are read for a store. */
  private static final Map<Location.Store, Set<String>> FAMILIES = Map.of(
      Location.Store.S3, Set.of("s3.", "client."),
      Location.Store.GCS, Set.of("gcs.", "gcp."),
      Location.Store.AZURE, Set.of("adls."));

  private static final String WRITE_TAGS = "s3.write.tags.";

  /**
   * The AWS SDK's providers whose credentials Laneway finds by itself. Their names are accepted, and change nothing.
   */
  private static final Set<String> FOUND = Set.of(
      "DefaultCredentialsProvider",
      "EnvironmentVariableCredentialsProvider",
      "ProfileCredentialsProvider",
      "InstanceProfileCredentialsProvider",
      "ContainerCredentialsProvider",
      "WebIdentityTokenFileCredentialsProvider");

  private static final String AWS_PROVIDERS = "software.amazon.awssdk.auth.credentials.";

  /** Properties that change the identity or the destination of requests in ways that aren't supported. */
  private static final Set<String> REFUSED =
      Set.of("client.factory", "s3.client-factory-impl", "gcp.impersonate.service-account");

  /** Flags that are refused if they are true, for the same reason. */
  private static final Set<String> REFUSED_FLAGS = Set.of("s3.remote-signing-enabled", "s3.access-grants.enabled");

  /** The prefixes of further properties that are refused. */
  private static final Set<String> REFUSED_FAMILIES =
      Set.of("s3.access-points.", "s3.delete.tags.", "adls.token-credential-provider");

  /** The properties with the key of Azure's account. */
  private static final String KEY_ACCOUNT = "adls.auth.shared-key.account.name";
  private static final String KEY = "adls.auth.shared-key.account.key";

  /** The prefix of the properties with a connection string, or the URL of a server. */
  private static final String CONNECTION = "adls.connection-string.";

  /** The signature in a SAS token. */
  private static final Pattern SIGNATURE = Pattern.compile("(^|&)sig=");

  private final Location.Store store;

  /** The container of a location in Azure. */
  private final AzureContainer container;
  private final TreeMap<String, String> said = new TreeMap<>();

  /** Reads the properties for a location. */
  StoreProperties(Location location, Map<String, String> properties) {
    this(location.store(), location.bucket(), properties);
  }

  /** Reads the properties of all locations in a store. */
  StoreProperties(Location.Store store, Map<String, String> properties) {
    this(store, "", properties);
  }

  private StoreProperties(Location.Store store, String bucket, Map<String, String> properties) {
    this.store = store;
    this.container = AzureContainer.of(bucket);
    properties.forEach((name, value) -> {
      boolean matters = FAMILIES.get(store).stream().anyMatch(name::startsWith);
      if (matters && value != null && !value.isBlank()) {
        said.put(name, value.trim());
      }
    });
  }

  /** Returns the properties that are read for the store. Their values include secrets. */
  Map<String, String> said() {
    return said;
  }

  Location.Store store() {
    return store;
  }

  /**
   * Returns a client that is configured by these properties, and by the environment if they don't set a value.
   *
   * @throws ValidationException for properties that aren't supported
   * @throws LanewayException for invalid values
   */
  Laneway client() throws LanewayException {
    checkNames();
    Laneway.Builder builder = Laneway.builder().fromEnvironment().userAgentSuffix("laneway-iceberg");
    set(builder);
    return builder.build();
  }

  /**
   * Checks the properties without a request.
   *
   * @throws ValidationException if a property or a combination isn't supported, or if a value is invalid
   */
  void check() {
    if (said.isEmpty()) {
      return;
    }
    checkNames();
    Laneway.Builder builder = Laneway.builder();
    set(builder);
    described();
    // This sends no request.
    try (Laneway made = builder.build()) {
      made.bucket(url("bucket"));
    } catch (LanewayException failed) {
      throw new ValidationException(failed, "%s: %s", said.keySet(), failed.getMessage());
    }
  }

  private void set(Laneway.Builder builder) {
    switch (store) {
      case S3 -> s3(builder);
      case GCS -> gcs(builder);
      case AZURE -> azure(builder);
    }
  }

  /** Returns the URL of a bucket for the library. */
  String url(String bucket) {
    return switch (store) {
      case S3 -> "s3://" + bucket + "/";
      case GCS -> "gs://" + bucket + "/";
      // A connection string has the account's endpoint, too.
      case AZURE -> AzureContainer.of(bucket).url(connection().isEmpty());
    };
  }

  /** Returns the options for every new object, such as its storage class. */
  PutOptions described() {
    PutOptions options = PutOptions.NONE;
    if (store != Location.Store.S3) {
      return options;
    }
    String acl = said.get("s3.acl");
    if (acl != null) {
      options = options.acl(acl);
    }
    String storageClass = said.get("s3.write.storage-class");
    if (storageClass != null) {
      options = options.storageClass(storageClass);
    }
    for (Map.Entry<String, String> one : said.tailMap(WRITE_TAGS).entrySet()) {
      if (!one.getKey().startsWith(WRITE_TAGS)) {
        break;
      }
      options = options.tag(one.getKey().substring(WRITE_TAGS.length()), one.getValue());
    }
    return options;
  }

  /** Returns whether Laneway deletes files, or leaves them to the bucket's lifecycle rules. */
  boolean deletes() {
    return store != Location.Store.S3 || Boolean.parseBoolean(said.getOrDefault("s3.delete-enabled", "true"));
  }

  private void s3(Laneway.Builder builder) {
    String endpoint = said.get("s3.endpoint");
    if (endpoint != null) {
      builder.s3Endpoint(endpoint);
    }
    String region = said.get("client.region");
    if (region != null) {
      builder.region(region);
    }
    String pathStyle = said.get("s3.path-style-access");
    if (pathStyle != null) {
      builder.s3PathStyle(Boolean.parseBoolean(pathStyle));
    }
    String id = said.get("s3.access-key-id");
    String secret = said.get("s3.secret-access-key");
    if ((id == null) != (secret == null)) {
      throw new ValidationException("s3.access-key-id and s3.secret-access-key must be set together");
    }
    if (id != null) {
      builder.accessKey(id, secret);
      String token = said.get("s3.session-token");
      if (token != null) {
        builder.sessionToken(token);
      }
    } else if (said.getOrDefault("client.credentials-provider", "").equals(AWS_PROVIDERS + "AnonymousCredentialsProvider")) {
      builder.anonymous(true);
    }
    String key = said.get("s3.sse.key");
    String type = said.getOrDefault("s3.sse.type", "none").toLowerCase(Locale.ROOT);
    switch (type) {
      case "none" -> {}
      case "s3" -> builder.sse("AES256");
      case "kms", "dsse-kms" -> {
        builder.sse(type.equals("kms") ? "aws:kms" : "aws:kms:dsse");
        if (key != null) {
          builder.kmsKey(key);
        }
      }
      case "custom" -> {
        if (key == null) {
          throw new ValidationException("s3.sse.type custom needs a key in s3.sse.key");
        }
        builder.customerKey(key);
      }
      default -> throw new ValidationException(
          "s3.sse.type: %s isn't supported; use none, s3, kms, dsse-kms or custom", type);
    }
  }

  private void gcs(Laneway.Builder builder) {
    String host = said.get("gcs.service.host");
    if (host != null) {
      builder.gcsEndpoint(host.endsWith("/") ? host.substring(0, host.length() - 1) : host);
    }
    String project = said.get("gcs.user-project");
    if (project != null) {
      builder.userProject(project);
    }
    String token = said.get("gcs.oauth2.token");
    if (Boolean.parseBoolean(said.get("gcs.no-auth"))) {
      if (token != null) {
        throw new ValidationException("gcs.no-auth and gcs.oauth2.token cannot be combined");
      }
      builder.anonymous(true);
    } else if (token != null) {
      builder.credentialProvider(new Token(token, end()));
    }
    String encrypts = said.get("gcs.encryption-key");
    String decrypts = said.getOrDefault("gcs.decryption-key", encrypts);
    if (encrypts != null && !encrypts.equals(decrypts)) {
      throw new ValidationException("gcs.encryption-key and gcs.decryption-key must be the same key");
    }
    if (decrypts != null) {
      builder.customerKey(decrypts);
    }
  }

  private void azure(Laneway.Builder builder) {
    Map<String, String> credentials = new TreeMap<>();
    String keyAccount = said.get(KEY_ACCOUNT);
    String key = said.get(KEY);
    if ((keyAccount == null) != (key == null)) {
      throw new ValidationException("%s and %s must be set together", KEY_ACCOUNT, KEY);
    }
    Optional<String> account = container.account().or(() -> Optional.ofNullable(keyAccount));
    account.ifPresent(builder::azureAccount);
    endpoint().ifPresent(builder::azureEndpoint);
    Optional<String> connection = connection().filter(StoreProperties::isConnectionString);
    Optional<String> sas = sasOfEndpoint().or(() -> forAccount("adls.sas-token."));
    String token = said.get("adls.token");
    // The order is that of ADLSFileIO.
    if (connection.isPresent()) {
      credentials.put("connection_string", connection.get());
    } else if (sas.isPresent()) {
      credentials.put("sas_token", sas.get());
    } else if (key != null) {
      if (!keyAccount.equals(account.get())) {
        throw new ValidationException(
            "%s names the account %s, but the location is in the account %s", KEY_ACCOUNT, keyAccount, account.get());
      }
      credentials.put("account_key", key);
    } else if (token != null) {
      credentials.put("token", token);
    }
    if (!credentials.isEmpty()) {
      builder.azureCredentials(credentials);
    }
  }

  /** Returns the URL of another server than Azure's, which ADLSFileIO also calls a connection string. */
  private Optional<String> endpoint() {
    return connection().filter(text -> !isConnectionString(text)).map(url -> AzureContainer.inBlobService(url.split("\\?", 2)[0]));
  }

  /** Returns the SAS token that is the query of the server's URL. */
  private Optional<String> sasOfEndpoint() {
    Optional<String> query = connection()
        .filter(text -> !isConnectionString(text) && text.contains("?")).map(url -> url.split("\\?", 2)[1]);
    if (query.isPresent() && !SIGNATURE.matcher(query.get()).find()) {
      throw new ValidationException(
          "%s%s: the URL's query must be a SAS token, and has no signature (sig)", CONNECTION, container.account().get());
    }
    return query;
  }

  private Optional<String> connection() {
    return forAccount(CONNECTION);
  }

  private static boolean isConnectionString(String text) {
    return !text.startsWith("http://") && !text.startsWith("https://");
  }

  /** Returns the property of the location's account: its name ends in the account's host, or in the account's name. */
  private Optional<String> forAccount(String beginning) {
    return Stream.concat(container.hosts().stream(), container.account().stream())
        .map(account -> said.get(beginning + account)).filter(Objects::nonNull).findFirst();
  }

  private Instant end() {
    String end = said.get("gcs.oauth2.token-expires-at");
    try {
      return end == null ? null : Instant.ofEpochMilli(Long.parseLong(end));
    } catch (NumberFormatException unreadable) {
      throw new ValidationException(unreadable, "gcs.oauth2.token-expires-at isn't a number of milliseconds");
    }
  }

  private void checkNames() {
    for (Map.Entry<String, String> one : said.entrySet()) {
      String name = one.getKey();
      boolean isRefused = REFUSED.contains(name)
          || (REFUSED_FLAGS.contains(name) && Boolean.parseBoolean(one.getValue()))
          || REFUSED_FAMILIES.stream().anyMatch(name::startsWith)
          || (name.equals("client.credentials-provider") && !isKnown(one.getValue()));
      if (isRefused) {
        throw new ValidationException(
            "%s isn't supported; the README of laneway-iceberg lists the supported properties", name);
      }
    }
  }

  private static boolean isKnown(String provider) {
    return provider.startsWith(AWS_PROVIDERS)
        && (FOUND.contains(provider.substring(AWS_PROVIDERS.length()))
            || provider.equals(AWS_PROVIDERS + "AnonymousCredentialsProvider"));
  }

  /** Shows names only, because some values are secrets. */
  @Override
  public String toString() {
    return "StoreProperties[" + store + ", " + said.keySet() + "]";
  }

  /** A token that a catalog has issued. */
  private record Token(String token, Instant end) implements CredentialProvider {
    @Override
    public BearerToken bearerToken() {
      return new BearerToken(token, end);
    }

    @Override
    public String toString() {
      return "Token[expiresAt=" + end + "]";
    }
  }
}
