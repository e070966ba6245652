package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.AzureContainer;
import dev.laneway.hadoop.EmbeddedStore;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.io.StorageCredential;
import org.junit.jupiter.api.Test;

/** Tests the effect of a catalog's properties. */
class StorePropertiesTest {
  private static final String SECRET = "hush-hush-hush";

  private static LanewayFileIO io(Map<String, String> properties) {
    LanewayFileIO io = new LanewayFileIO();
    io.initialize(properties);
    return io;
  }

  @Test
  void whatWouldAskAsSomebodyElseOrElsewhereIsRefused() {
    for (Map<String, String> refused : List.of(
        Map.of("client.factory", "org.example.Factory"),
        Map.of("s3.client-factory-impl", "org.example.Factory"),
        Map.of("s3.remote-signing-enabled", "true"),
        Map.of("s3.access-grants.enabled", "true"),
        Map.of("s3.access-points.lake", "arn:aws:s3::1:accesspoint/x"),
        Map.of("s3.delete.tags.gone", "yes"),
        Map.of("client.credentials-provider", "org.example.Provider"),
        Map.of("adls.token-credential-provider", "org.example.Provider"),
        Map.of("gcp.impersonate.service-account", "a@b"))) {
      ValidationException failed = assertThrows(ValidationException.class, () -> io(refused));
      assertTrue(failed.getMessage().contains(refused.keySet().iterator().next()), failed.getMessage());
    }
    assertDoesNotThrow(() -> io(Map.of(
        "s3.remote-signing-enabled", "false",
        "client.credentials-provider", "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        "s3.multipart.num-threads", "50")));
  }

  @Test
  void whatMakesNoSenseTogetherIsRefusedByItsNamesAndNoSecretRepeated() {
    for (Map<String, String> refused : List.of(
        Map.of("s3.access-key-id", SECRET),
        Map.of("adls.auth.shared-key.account.key", SECRET),
        Map.of("s3.sse.type", "custom"),
        Map.of("s3.sse.type", "rot13"),
        Map.of("gcs.no-auth", "true", "gcs.oauth2.token", SECRET),
        Map.of("gcs.encryption-key", SECRET, "gcs.decryption-key", "another"),
        Map.of("gcs.oauth2.token", SECRET, "gcs.oauth2.token-expires-at", "soon"),
        Map.of("s3.sse.type", "custom", "s3.sse.key", SECRET),
        Map.of("gcs.encryption-key", SECRET))) {
      ValidationException failed = assertThrows(ValidationException.class, () -> io(refused), () -> "taken: " + refused);
      assertFalse(failed.toString().contains(SECRET), failed.toString());
    }
  }

  @Test
  void credentialsOfTheLongestPrefixGoBeforeTheProperties() throws IOException {
    EmbeddedStore store = EmbeddedStore.with("lake");
    Map<String, String> wrong = new HashMap<>(Catalogs.properties(store));
    wrong.put("s3.secret-access-key", SECRET);
    LanewayFileIO io = io(wrong);
    String location = "s3://lake/vended-" + System.nanoTime() + "/x";
    RuntimeException refused = assertThrows(RuntimeException.class, () -> io.newInputFile(location).exists());
    assertFalse(refused.toString().contains(SECRET), refused.toString());
    io.setCredentials(List.of(
        StorageCredential.create("s3://lake", Map.of("s3.secret-access-key", SECRET)),
        StorageCredential.create("s3://lake/vended-", Map.of("s3.secret-access-key", "lanewaysecret")),
        StorageCredential.create("s3://lake/other", Map.of("s3.secret-access-key", SECRET))));
    try (PositionOutputStream out = io.newOutputFile(location).create()) {
      out.write(1);
    }
    try (SeekableInputStream in = io.newInputFile(location).newStream()) {
      assertArrayEquals(new byte[] {1}, in.readAllBytes());
    }
  }

  @Test
  void filesStayWhereTheyAreNotToBeDeleted() throws IOException {
    Map<String, String> properties = new HashMap<>(Catalogs.properties(EmbeddedStore.with("lake")));
    properties.put("s3.delete-enabled", "false");
    LanewayFileIO io = io(properties);
    String location = "s3://lake/kept-" + System.nanoTime();
    io.newOutputFile(location).create().close();
    io.deleteFile(location);
    io.deleteFiles(List.of(location));
    io.deletePrefix(location);
    assertTrue(io.newInputFile(location).exists());
  }

  @Test
  void nothingShowsASecret() {
    Map<String, String> properties = Map.of(
        "s3.access-key-id", "id",
        "s3.secret-access-key", SECRET,
        "s3.session-token", SECRET,
        "adls.sas-token.mine.dfs.core.windows.net", SECRET,
        "gcs.oauth2.token", SECRET);
    LanewayFileIO io = io(properties);
    for (Object shown : List.of(
        io,
        new StoreProperties(Location.Store.S3, properties),
        new StoreProperties(Location.Store.GCS, properties),
        new StoreProperties(Location.Store.AZURE, properties),
        io.newInputFile("s3://lake/x"),
        io.newOutputFile("gs://lake/x"))) {
      assertFalse(shown.toString().contains(SECRET), shown.toString());
    }
  }

  @Test
  void theKeyOfAzuresAccountGoesBeforeAToken() throws IOException {
    String location = Catalogs.root("abfss", "lake") + "key-" + System.nanoTime();
    Map<String, String> properties = new HashMap<>(Catalogs.properties(EmbeddedStore.with("lake")));
    properties.put("adls.token", "any");
    io(properties).newOutputFile(location).create().close();
    // The store accepts any token, but only the account's own key.
    properties.put("adls.auth.shared-key.account.key", "d3Jvbmc=");
    LanewayFileIO wrong = io(properties);
    assertThrows(RuntimeException.class, () -> wrong.newInputFile(location).exists());
  }

  /** Returns a SAS token of the embedded store's account for all containers and blobs. */
  private static String sas() throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(Base64.getDecoder().decode(EmbeddedStore.ACCOUNT_KEY), "HmacSHA256"));
    String signed = EmbeddedStore.ACCOUNT + "\nrwdl\nb\nsco\n\n2100-01-01T00:00:00Z\n\n\n2020-04-08\n";
    String signature = Base64.getEncoder().encodeToString(mac.doFinal(signed.getBytes(StandardCharsets.UTF_8)));
    return "sv=2020-04-08&ss=b&srt=sco&sp=rwdl&se=2100-01-01T00%3A00%3A00Z&sig="
        + URLEncoder.encode(signature, StandardCharsets.UTF_8);
  }

  @Test
  void theUrlOfAzuresServerMayHaveASasToken() throws Exception {
    String location = Catalogs.root("abfss", "lake") + "sas-" + System.nanoTime();
    String account = EmbeddedStore.ACCOUNT + ".dfs.core.windows.net";
    String url = EmbeddedStore.with("lake").url() + "/" + EmbeddedStore.ACCOUNT;
    LanewayFileIO io = io(Map.of(
        "adls.connection-string." + account, url + "?" + sas(),
        "adls.sas-token." + account, "sv=2021&sig=" + SECRET));
    io.newOutputFile(location).create().close();
    assertTrue(io.newInputFile(location).exists());
    LanewayFileIO other = io(Map.of("adls.connection-string." + account, url + "?code=" + SECRET));
    ValidationException refused = assertThrows(ValidationException.class, () -> other.newInputFile(location));
    assertTrue(refused.getMessage().contains("adls.connection-string." + EmbeddedStore.ACCOUNT), refused.getMessage());
    assertFalse(refused.toString().contains(SECRET), refused.toString());
  }

  @Test
  void onlyTheHostOfAUrlBecomesLowerCase() {
    assertEquals("https://mine.blob.core.windows.net/Lake.DFS./?sig=AbC",
        AzureContainer.inBlobService("https://Mine.DFS.core.windows.net/Lake.DFS./?sig=AbC"));
    assertEquals("mine.blob.core.windows.net", AzureContainer.inBlobService("Mine.dfs.core.windows.net"));
  }

  @Test
  void eachAccountOfAzureHasItsOwnCredentials() throws IOException {
    EmbeddedStore store = EmbeddedStore.with("lake");
    String account = EmbeddedStore.ACCOUNT;
    String endpoint = store.url() + "/" + account;
    String string = "AccountName=" + account + ";AccountKey=" + EmbeddedStore.ACCOUNT_KEY + ";BlobEndpoint=" + endpoint;
    String location = Catalogs.root("abfss", "lake") + "account-" + System.nanoTime();
    String wasb = location.replace("abfss:", "wasbs:").replace(".dfs.", ".blob.");
    LanewayFileIO io = io(Map.of("adls.connection-string." + account + ".dfs.core.windows.net", string));
    io.newOutputFile(location).create().close();
    assertTrue(io.newInputFile(wasb).exists());
    String host = account + ".dfs.core.windows.net";
    LanewayFileIO token = io(Map.of("adls.connection-string." + host, endpoint, "adls.token", "any"));
    assertTrue(token.newInputFile(location).exists());
    LanewayFileIO sas = io(Map.of("adls.connection-string." + host, endpoint, "adls.sas-token." + host, "sv=2021&sig=" + SECRET));
    RuntimeException refused = assertThrows(RuntimeException.class, () -> sas.newInputFile(location).exists());
    assertFalse(refused.toString().contains(SECRET), refused.toString());
    LanewayFileIO other = io(Map.of(
        "adls.auth.shared-key.account.name", "theirs", "adls.auth.shared-key.account.key", EmbeddedStore.ACCOUNT_KEY));
    ValidationException wrong = assertThrows(ValidationException.class, () -> other.newInputFile(location));
    assertTrue(wrong.getMessage().contains("theirs") && wrong.getMessage().contains(account), wrong.getMessage());
  }
}
