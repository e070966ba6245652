package dev.laneway.hadoop;

import dev.laneway.AzureContainer;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Reads the keys of hadoop-azure's connectors ABFS and WASB. Both reach the Blob service here. Directories are therefore
 * renamed file by file, and there are no ACLs.
 */
final class AzureSettings {
  /** ABFS's own default (fs.azure.block.size). */
  private static final long BLOCK_BYTES = 256 << 20;

  /** The objects that one batch request of Azure deletes at most. */
  private static final int PAGE_SIZE = 256;

  private static final String PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2.";
  private static final String SIMPLE_KEYS = "org.apache.hadoop.fs.azurebfs.services.SimpleKeyProvider";
  private static final String FIXED_SAS = "org.apache.hadoop.fs.azurebfs.services.FixedSASTokenProvider";

  /** ABFS's own defaults for a machine's identity and for a workload identity. */
  private static final String METADATA = "http://169.254.169.254/metadata/identity/oauth2/token";
  private static final String TOKEN_FILE = "/var/run/secrets/azure/tokens/azure-identity-token";

  /** The URL of a tenant's tokens: server, tenant, and the version of the protocol. */
  private static final Pattern TOKEN_URL = Pattern.compile("(https://[^/]+)/([^/]+)/oauth2(?:/v2\\.0)?/token/?");

  private AzureSettings() {}

  /** Returns the endings of keys for a container and its account. The first ones go before the others. */
  static List<String> endings(AzureContainer container) {
    Stream<String> own = container.hosts().stream().map(host -> container.name() + "." + host);
    return Stream.concat(own, container.hosts().stream()).toList();
  }

  static Settings of(AzureContainer container, Values values, Settings.Engine engine) throws IOException {
    Optional<String> endpoint = values.text("abfs.endpoint").map(at -> url(at, container, values));
    return new Settings(
        Settings.Store.AZURE,
        // Without an endpoint of its own, the URL names the account's host. The library checks that the host is Azure's.
        endpoint.isPresent() ? container.name() : container.name() + container.host().map(host -> "@" + host).orElse(""),
        endpoint,
        Optional.empty(),
        container.account(),
        Optional.empty(),
        false,
        login(values),
        Optional.empty(),
        Map.of(),
        false,
        Optional.empty(),
        new Settings.Encryption(Optional.empty(), Optional.empty()),
        files(values),
        engine);
  }

  /**
   * Returns the URL of another server than Azure's. A server at an address instead of a name has the account in the path,
   * as emulators have it.
   */
  private static String url(String endpoint, AzureContainer container, Values values) {
    boolean isTls = values.flag("always.use.https").orElse(true);
    String url = endpoint.contains("://") ? endpoint : (isTls ? "https://" : "http://") + endpoint;
    URI parsed = URI.create(url);
    boolean isAddress = parsed.getHost() != null && parsed.getHost().matches("localhost|[0-9.]+|\\[.*]");
    boolean hasPath = parsed.getPath() != null && parsed.getPath().length() > 1;
    if (isAddress && !hasPath && container.account().isPresent()) {
      return url.replaceFirst("/+$", "") + "/" + container.account().get();
    }
    return url;
  }

  /** Returns the credentials. Without a type, a key or a fixed token is enough. Without both, the library searches. */
  static Login login(Values values) throws IOException {
    Optional<String> type = values.text("account.auth.type");
    switch (type.orElse("").toLowerCase(Locale.ROOT)) {
      case "sharedkey" -> {
        return key(values).orElseThrow(() -> new IOException("fs.azure.account.auth.type is SharedKey, and"
            + " fs.azure.account.key has no key of this account"));
      }
      case "sas" -> {
        return sas(values).orElseThrow(() -> new IOException("fs.azure.account.auth.type is SAS, and"
            + " fs.azure.sas.fixed.token has no token for this account"));
      }
      case "oauth" -> {
        return identity(values);
      }
      case "" -> {
        Optional<Login> key = key(values);
        Optional<Login> set = key.isPresent() ? key : sas(values);
        return set.isPresent() ? set.get() : found(values);
      }
      default -> throw new IOException(
          "fs.azure.account.auth.type: Laneway doesn't support the type " + type.get() + "; use SharedKey, SAS or OAuth");
    }
  }

  /**
   * Leaves the search for credentials to the library.
   *
   * @throws IOException if the keys describe an identity of Entra ID, which hadoop-azure uses only with the type OAuth
   */
  private static Login found(Values values) throws IOException {
    for (Map.Entry<String, Values.Value> one : values.all().entrySet()) {
      // Other keys with this beginning are those of other containers.
      boolean isOurs = KeyRules.of(Settings.Store.AZURE, one.getKey(), one.getValue().text()) == KeyRules.Rule.SUPPORTED;
      if (isOurs && one.getKey().startsWith("account.oauth")) {
        throw new IOException(one.getValue().name() + " is set, but fs.azure.account.auth.type isn't set for this account;"
            + " set it to OAuth, or remove the keys that begin with fs.azure.account.oauth");
      }
    }
    return Login.Found.ANYWHERE;
  }

  private static Optional<Login> key(Values values) throws IOException {
    String provider = values.text("account.keyprovider").orElse(SIMPLE_KEYS);
    if (!provider.equals(SIMPLE_KEYS)) {
      throw new IOException("fs.azure.account.keyprovider: Laneway doesn't support " + provider + "; put the key into"
          + " fs.azure.account.key or into a credential provider of Hadoop");
    }
    return values.secret("account.key").map(key -> new Login.Azure(Map.of("account_key", key)));
  }

  private static Optional<Login> sas(Values values) throws IOException {
    String provider = values.text("sas.token.provider.type").orElse(FIXED_SAS);
    if (!provider.equals(FIXED_SAS)) {
      throw new IOException("fs.azure.sas.token.provider.type: Laneway doesn't support " + provider + "; put the token into"
          + " fs.azure.sas.fixed.token");
    }
    Optional<String> token = values.secret("sas.fixed.token");
    // WASB has the token of a container under another name.
    return (token.isPresent() ? token : values.secret("sas")).map(text -> new Login.Azure(Map.of("sas_token", text)));
  }

  /** Returns an identity of Entra ID. */
  private static Login identity(Values values) throws IOException {
    String provider = values.text("account.oauth.provider.type").orElse("");
    String kind = provider.startsWith(PROVIDERS) ? provider.substring(PROVIDERS.length()) : provider;
    Map<String, String> parts = new TreeMap<>();
    switch (kind) {
      case "ClientCredsTokenProvider" -> {
        String url = needed(values, "account.oauth2.client.endpoint");
        Matcher named = TOKEN_URL.matcher(url);
        if (!named.matches()) {
          throw new IOException("fs.azure.account.oauth2.client.endpoint must be a URL such as"
              + " https://login.microsoftonline.com/TENANT/oauth2/token, and is " + url);
        }
        parts.put("authority_host", named.group(1));
        parts.put("tenant_id", named.group(2));
        parts.put("client_id", needed(values, "account.oauth2.client.id"));
        parts.put("client_secret", needed(values, "account.oauth2.client.secret"));
        return new Login.Azure(parts);
      }
      case "WorkloadIdentityTokenProvider" -> {
        authority(values).ifPresent(host -> parts.put("authority_host", host));
        parts.put("tenant_id", needed(values, "account.oauth2.msi.tenant"));
        parts.put("client_id", needed(values, "account.oauth2.client.id"));
        parts.put("federated_token_file", values.text("account.oauth2.token.file").orElse(TOKEN_FILE));
        return new Login.Azure(parts);
      }
      case "MsiTokenProvider" -> {
        if (!values.text("account.oauth2.msi.endpoint").orElse(METADATA).equals(METADATA)) {
          throw new IOException("fs.azure.account.oauth2.msi.endpoint: Laneway uses only " + METADATA
              + ", or the variables IDENTITY_ENDPOINT and IDENTITY_HEADER");
        }
        parts.put("use_managed_identity", "true");
        values.text("account.oauth2.client.id").ifPresent(id -> parts.put("client_id", id));
        return new Login.Azure(parts);
      }
      default -> throw new IOException("fs.azure.account.oauth.provider.type: Laneway doesn't support the provider "
          + (provider.isEmpty() ? "(none is set)" : provider)
          + "; use ClientCredsTokenProvider, WorkloadIdentityTokenProvider or MsiTokenProvider");
    }
  }

  private static Optional<String> authority(Values values) {
    return values.text("account.oauth2.msi.authority").map(url -> url.replaceFirst("/+$", ""));
  }

  private static String needed(Values values, String key) throws IOException {
    return values.secret(key).orElseThrow(() -> new IOException("fs.azure." + key + " isn't set for this account"));
  }

  private static Settings.Files files(Values values) {
    return new Settings.Files(
        values.bytes("block.size", BLOCK_BYTES),
        values.text("read.policy").flatMap(ReadPolicy::first).orElse(ReadPolicy.ADAPTIVE),
        false,
        PAGE_SIZE,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        false,
        Optional.empty());
  }
}
