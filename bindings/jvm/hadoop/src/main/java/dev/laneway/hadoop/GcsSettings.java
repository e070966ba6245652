package dev.laneway.hadoop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.hadoop.security.UserGroupInformation;

/** Reads the keys of the GCS connector, both the current ones and those from before 2020. */
final class GcsSettings {
  /** Google's own endpoint. The library uses this endpoint by default, unless the environment names an emulator. */
  private static final String GOOGLE = "https://storage.googleapis.com";

  /** The connector's own default (fs.gs.block.size). */
  private static final long BLOCK_BYTES = 64 << 20;

  /** The objects that ten batch requests of GCS delete. A batch request can delete up to 100 objects. */
  private static final int PAGE_SIZE = 1000;

  /** The beginning of the keys that name headers. */
  private static final String HEADERS = "storage.http.headers.";

  /** The beginning of the keys that name a service account to impersonate. */
  private static final String IMPERSONATED = "auth.impersonation.service.account";

  /** The variable that names the file of Google's application default credentials. */
  private static final String ADC = "GOOGLE_APPLICATION_CREDENTIALS";

  private GcsSettings() {}

  static Settings of(String bucket, Values values, Settings.Engine engine) throws IOException {
    Optional<String> endpoint = values.text("storage.root.url")
        .map(url -> url.endsWith("/") ? url.substring(0, url.length() - 1) : url)
        .filter(url -> !url.equals(GOOGLE));
    String pays = values.text("requester.pays.mode").orElse("DISABLED").toUpperCase(Locale.ROOT);
    boolean requesterPays = pays.equals("ENABLED") || pays.equals("AUTO")
        || (pays.equals("CUSTOM") && values.text("requester.pays.buckets").orElse("").contains(bucket));
    return new Settings(
        Settings.Store.GCS,
        bucket,
        endpoint,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        false,
        login(values),
        proxy(values),
        headers(values),
        requesterPays,
        requesterPays ? values.text("requester.pays.project.id").or(() -> values.text("project.id")) : Optional.empty(),
        new Settings.Encryption(values.text("encryption.algorithm"), values.secret("encryption.key")),
        files(values),
        engine);
  }

  private static Login login(Values values) throws IOException {
    Login own = own(values);
    Optional<String> account = account(values);
    if (account.isEmpty()) {
      return own;
    }
    if (own instanceof Login.Anonymous) {
      throw new IOException("fs.gs.auth.impersonation.service.account needs credentials, and fs.gs.auth.type or"
          + " fs.gs.auth.null.enable says that there are none");
    }
    return new Login.Impersonated(account.get(), own);
  }

  /** Returns the service account to impersonate, for this user, else for one of the user's groups, else for all. */
  private static Optional<String> account(Values values) throws IOException {
    UserGroupInformation user = UserGroupInformation.getCurrentUser();
    Optional<String> account = values.text(IMPERSONATED + ".for.user." + user.getShortUserName());
    boolean areGroupsNamed = values.all().keySet().stream().anyMatch(key -> key.startsWith(IMPERSONATED + ".for.group."));
    if (account.isEmpty() && areGroupsNamed) {
      account = Arrays.stream(user.getGroupNames())
          .flatMap(group -> values.text(IMPERSONATED + ".for.group." + group).stream()).findFirst();
    }
    return account.or(() -> values.text(IMPERSONATED));
  }

  private static Login own(Values values) throws IOException {
    String type = values.text("auth.type").orElse("").toUpperCase(Locale.ROOT);
    switch (type) {
      case "UNAUTHENTICATED" -> {
        return new Login.Anonymous();
      }
      case "APPLICATION_DEFAULT" -> {
        return Login.Found.ANYWHERE;
      }
      case "COMPUTE_ENGINE" -> {
        // The library searches these files before it uses the machine's identity, so it must not see them.
        return new Login.Found(Map.of(ADC, "", "CLOUDSDK_CONFIG", "/dev/null"));
      }
      case "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE" -> {
        String file = values.text("auth.workload.identity.federation.credential.config.file").orElseThrow(
            () -> new IOException("fs.gs.auth.workload.identity.federation.credential.config.file must name the file"));
        return new Login.Found(Map.of(ADC, file));
      }
      case "", "SERVICE_ACCOUNT_JSON_KEYFILE" -> {}
      default -> throw new IOException("fs.gs.auth.type: Laneway doesn't support the type " + type + "; use one of"
          + " UNAUTHENTICATED, APPLICATION_DEFAULT, COMPUTE_ENGINE, SERVICE_ACCOUNT_JSON_KEYFILE and"
          + " WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE");
    }
    Optional<String> file = values.text("auth.service.account.json.keyfile");
    if (file.isPresent()) {
      return new Login.ServiceAccount(read(file.get()));
    }
    if (!type.isEmpty()) {
      throw new IOException("fs.gs.auth.service.account.json.keyfile must name the file of the service account's key");
    }
    if (values.isOn("auth.null.enable")) {
      return new Login.Anonymous();
    }
    Optional<String> email = values.secret("auth.service.account.email");
    Optional<String> id = values.secret("auth.service.account.private.key.id");
    Optional<String> key = values.secret("auth.service.account.private.key");
    if (email.isPresent() && id.isPresent() && key.isPresent()) {
      return new Login.ServiceAccount(account(email.get(), id.get(), key.get()));
    }
    return Login.Found.ANYWHERE;
  }

  /** Returns the proxy. */
  private static Optional<Settings.Proxy> proxy(Values values) throws IOException {
    Optional<String> address = values.text("proxy.address");
    if (address.isEmpty()) {
      return Optional.empty();
    }
    Optional<String> user = values.secret("proxy.username");
    Optional<String> password = values.secret("proxy.password");
    if (user.isPresent() != password.isPresent()) {
      throw new IOException("fs.gs.proxy.username and fs.gs.proxy.password must be set together");
    }
    return Optional.of(new Settings.Proxy("http://", address.get().replaceFirst("^http://", ""), user, password));
  }

  /** Returns the headers of all requests, by the keys that name them. */
  private static Map<String, String> headers(Values values) {
    Map<String, String> headers = new TreeMap<>();
    values.all().forEach((key, value) -> {
      if (key.startsWith(HEADERS)) {
        headers.put(key.substring(HEADERS.length()), value.text());
      }
    });
    return headers;
  }

  private static String read(String file) throws IOException {
    try {
      return Files.readString(Path.of(file));
    } catch (NoSuchFileException missing) {
      throw new IOException("fs.gs.auth.service.account.json.keyfile names " + file + ", which doesn't exist", missing);
    }
  }

  /**
   * Makes the JSON text of a service account's key, as Google issues it, from the three parts that a configuration can
   * contain.
   */
  private static String account(String email, String id, String key) {
    return "{\"type\":\"service_account\",\"token_uri\":\"https://oauth2.googleapis.com/token\""
        + ",\"client_email\":" + quoted(email)
        + ",\"private_key_id\":" + quoted(id)
        + ",\"private_key\":" + quoted(key.replace("\\n", "\n")) + "}";
  }

  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
  }

  private static Settings.Files files(Values values) {
    return new Settings.Files(
        values.bytes("block.size", BLOCK_BYTES),
        ReadPolicy.ADAPTIVE,
        !values.flag("create.items.conflict.check.enable").orElse(true),
        values.number("bulk.delete.page.size", PAGE_SIZE),
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        false,
        values.text("working.dir"));
  }
}
