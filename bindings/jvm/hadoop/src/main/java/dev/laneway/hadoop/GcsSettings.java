package dev.laneway.hadoop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the keys of the GCS connector, both current ones and those of before 2020. */
final class GcsSettings {
  private static final Logger LOG = LoggerFactory.getLogger(GcsSettings.class);

  /** Google's own endpoint. The library uses it anyway, unless the environment names an emulator. */
  private static final String GOOGLE = "https://storage.googleapis.com";

  /** The connector's own default (fs.gs.block.size). */
  private static final long BLOCK_BYTES = 64 << 20;

  /** Ten requests of GCS's batches, which take 100 calls each. */
  private static final int PAGE_SIZE = 1000;

  private GcsSettings() {}

  static Settings of(String bucket, Values values) throws IOException {
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
        false,
        login(values),
        requesterPays,
        requesterPays ? values.text("requester.pays.project.id").or(() -> values.text("project.id")) : Optional.empty(),
        new Settings.Encryption(values.text("encryption.algorithm"), values.secret("encryption.key")),
        files(values));
  }

  private static Login login(Values values) throws IOException {
    String type = values.text("auth.type").orElse("").toUpperCase(Locale.ROOT);
    boolean isAnonymous = type.equals("UNAUTHENTICATED") || values.isOn("auth.null.enable");
    if (isAnonymous) {
      return new Login.Anonymous();
    }
    if (type.equals("ACCESS_TOKEN_PROVIDER") || values.text("auth.access.token.provider.impl").isPresent()) {
      LOG.warn("a class that hands out tokens is not asked: credentials come from where Google's own tools find them");
      return new Login.Found();
    }
    Optional<String> file = values.text("auth.service.account.json.keyfile");
    if (file.isPresent()) {
      return new Login.ServiceAccount(read(file.get()));
    }
    Optional<String> email = values.secret("auth.service.account.email");
    Optional<String> id = values.secret("auth.service.account.private.key.id");
    Optional<String> key = values.secret("auth.service.account.private.key");
    if (email.isPresent() && id.isPresent() && key.isPresent()) {
      return new Login.ServiceAccount(account(email.get(), id.get(), key.get()));
    }
    return new Login.Found();
  }

  private static String read(String file) throws IOException {
    try {
      return Files.readString(Path.of(file));
    } catch (NoSuchFileException missing) {
      throw new IOException("fs.gs.auth.service.account.json.keyfile names " + file + ", which isn't there", missing);
    }
  }

  /**
   * Returns the JSON that Google hands out for a service account, from the three parts that a configuration may have.
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
        false);
  }
}
