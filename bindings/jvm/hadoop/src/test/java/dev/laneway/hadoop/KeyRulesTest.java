package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Each key that the other connectors document has an effect, is harmless, or is refused by name. */
class KeyRulesTest {
  /** Returns the rule for each documented key, given without the key's beginning. */
  private static Map<String, KeyRules.Rule> documented(Settings.Store store) throws IOException {
    Map<String, KeyRules.Rule> documented = new TreeMap<>();
    String page = switch (store) {
      case S3 -> "/keys/s3a.txt";
      case GCS -> "/keys/gs.txt";
      case AZURE -> "/keys/azure.txt";
    };
    KeyRules.Rule rule = null;
    try (BufferedReader lines = new BufferedReader(
        new InputStreamReader(KeyRulesTest.class.getResourceAsStream(page), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.startsWith(store.family + ".")) {
          documented.put(line.substring(store.family.length() + 1), rule);
        } else if (!line.startsWith("#")) {
          rule = KeyRules.Rule.valueOf(line.toUpperCase());
        }
      }
    }
    assertTrue(documented.size() > 80, documented::toString);
    return documented;
  }

  @ParameterizedTest
  @EnumSource(Settings.Store.class)
  void eachDocumentedKeyIsSortedAsThePageSays(Settings.Store store) throws IOException {
    Map<String, KeyRules.Rule> sorted = new TreeMap<>();
    Map<String, KeyRules.Rule> documented = documented(store);
    documented.keySet().forEach(key -> sorted.put(key, KeyRules.of(store, key, "anything")));
    assertEquals(documented, sorted);
  }

  /** Some tools copy configurations, and the copy doesn't show which values are Hadoop's defaults. */
  @ParameterizedTest
  @CsvSource({"s3a, fs.s3a.", "gs, fs.gs.", "abfss, fs.azure."})
  void hadoopsOwnDefaultsAreAcceptedWhereTheyAreSet(String scheme, String family) {
    Configuration copied = new Configuration(false);
    for (Map.Entry<String, String> one : new Configuration()) {
      if (one.getKey().startsWith(family)) {
        copied.set(one.getKey(), one.getValue());
      }
    }
    copied.set("fs.s3a.access.key", "A");
    copied.set("fs.s3a.secret.key", "S");
    assertDoesNotThrow(() -> Settings.of(URI.create(scheme + "://lake/"), copied));
  }

  @ParameterizedTest
  @CsvSource({
    "s3a, fs.s3a.custom.signers, Ours:com.example.Signer",
    "s3a, fs.s3a.bucket.lake.delegation.token.binding, com.example.Binding",
    "s3a, fs.s3a.access.grants.enabled, true",
    "s3a, fs.s3a.heard.of.by.nobody, 1",
    "s3a, fs.s3a.bucket.lake.heard.of.by.nobody, 1",
    "s3a, fs.s3a.eu.endpoint, http://localhost",
    "abfss, fs.azure.authorization, true",
    "abfss, fs.azure.encryption.context.provider.type, com.example.Provider",
    "abfss, fs.azure.heard.of.by.nobody, 1",
    "gs, fs.gs.auth.access.token.provider.impl, com.example.Tokens",
    "gs, google.cloud.token.server.url, https://tokens.example/"
  })
  void aKeyThatWouldChangeWhoseRequestsTheseAreIsRefusedByName(String scheme, String key, String value) {
    Configuration conf = new Configuration(false);
    conf.set(key, value);
    IOException refused = assertThrows(IOException.class, () -> Settings.of(URI.create(scheme + "://lake/"), conf));
    assertTrue(refused.getMessage().startsWith(key + " isn't supported"), refused::toString);
    conf.set("fs.laneway.ignored.keys", "fs.other, " + key);
    assertDoesNotThrow(() -> Settings.of(URI.create(scheme + "://lake/"), conf));
  }

  @ParameterizedTest
  @CsvSource({
    "fs.s3a.acces.key, Check the spelling: did you mean fs.s3a.access.key?",
    "fs.s3a.bucket.lake.endpiont, Check the spelling: did you mean fs.s3a.bucket.lake.endpoint?",
    "fs.s3a.heard.of.by.nobody, Check the spelling.",
    "fs.laneway.memroy, fs.laneway.memroy isn't a key of Laneway; did you mean fs.laneway.memory?",
    "fs.laneway.heard.of.by.nobody, fs.laneway.heard.of.by.nobody isn't a key of Laneway"
  })
  void aMisspeltKeyIsRefusedWithTheNearestKey(String key, String text) {
    Configuration conf = new Configuration(false);
    conf.set(key, "1");
    IOException refused = assertThrows(IOException.class, () -> Settings.of(URI.create("s3a://lake/"), conf));
    assertTrue(refused.getMessage().contains(text), refused::toString);
    conf.set("fs.laneway.ignored.keys", key);
    assertDoesNotThrow(() -> Settings.of(URI.create("s3a://lake/"), conf));
  }

  @ParameterizedTest
  @CsvSource({"fs.s3a.block.size", "fs.s3a.bucket.lake.bulk.delete.page.size", "fs.laneway.memory"})
  void anUnreadableNumberIsReportedWithItsKey(String key) {
    Configuration conf = new Configuration(false);
    conf.set(key, "banana");
    IllegalArgumentException refused =
        assertThrows(IllegalArgumentException.class, () -> Settings.of(URI.create("s3a://lake/"), conf));
    assertEquals(key + " must be a number, or a size such as 64M, and is banana", refused.getMessage());
  }

  @ParameterizedTest
  @CsvSource({"fs.s3a.path.style.access", "fs.s3a.bucket.lake.path.style.access"})
  void anUnreadableFlagIsReportedWithItsKey(String key) {
    Configuration conf = new Configuration(false);
    conf.set(key, "ture");
    IllegalArgumentException refused =
        assertThrows(IllegalArgumentException.class, () -> Settings.of(URI.create("s3a://lake/"), conf));
    assertEquals(key + " must be true or false, and is ture", refused.getMessage());
  }

  @Test
  void keysOfOtherBucketsAndHarmlessValuesAreIgnored() {
    Configuration conf = new Configuration(false);
    conf.set("fs.s3a.bucket.sea.custom.signers", "Ours:com.example.Signer");
    conf.set("fs.s3a.bucket.lake.eu.endpoint", "http://localhost");
    conf.set("fs.s3a.bucket.lake.eu.custom.signers", "Ours:com.example.Signer");
    conf.set("fs.s3a.access.grants.enabled", "false");
    conf.set("fs.s3a.delegation.token.binding", " ");
    conf.set("fs.s3a.connection.maximum", "500");
    assertDoesNotThrow(() -> Settings.of(URI.create("s3a://lake/"), conf));
  }
}
