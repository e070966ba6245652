package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.alias.CredentialProvider;
import org.apache.hadoop.security.alias.CredentialProviderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SettingsTest {
  private static Settings of(String uri, Map<String, String> values) throws IOException {
    Configuration conf = new Configuration(false);
    values.forEach(conf::set);
    return Settings.of(URI.create(uri), conf);
  }

  @Test
  void aSchemeSaysWhichStoreIsMeant() throws IOException {
    for (String scheme : new String[] {"s3", "s3a", "s3n", "laneway+s3", "laneway+s3a", "S3A"}) {
      assertEquals(Settings.Store.S3, of(scheme + "://lake/x", Map.of()).store());
    }
    assertEquals(Settings.Store.GCS, of("gs://lake", Map.of()).store());
    assertEquals(Settings.Store.GCS, of("laneway+gs://lake", Map.of()).store());
    assertThrows(IOException.class, () -> of("hdfs://lake", Map.of()));
  }

  @Test
  void nothingIsSetWhereNothingIsSaid() throws IOException {
    Settings settings = of("s3a://lake/", Map.of());
    assertEquals("lake", settings.bucket());
    assertEquals(Optional.empty(), settings.endpoint());
    assertEquals(Optional.empty(), settings.region());
    assertEquals(Optional.empty(), settings.pathStyle());
    assertEquals(new Login.Found(), settings.login());
  }

  @Test
  void whatHadoopsOwnDefaultsSayOfOtherConnectorsIsSaidByNobody() throws IOException {
    Configuration conf = new Configuration();
    assertEquals("false", conf.get("fs.s3a.path.style.access"));
    assertEquals(Optional.empty(), Settings.of(URI.create("s3a://lake/"), conf).pathStyle());
    conf.set("fs.s3a.path.style.access", "false");
    assertEquals(Optional.of(false), Settings.of(URI.create("s3a://lake/"), conf).pathStyle());
  }

  @Test
  void aSecretInTheUriIsRefusedAndNotRepeated() {
    IOException refused = assertThrows(IOException.class, () -> of("s3a://id:pa55word@lake/", Map.of()));
    assertFalse(refused.getMessage().contains("pa55word"));
  }

  @Test
  void whatIsSaidOfOneBucketGoesBeforeWhatIsSaidOfAll() throws IOException {
    Map<String, String> values = Map.of(
        "fs.s3a.endpoint", "https://minio.example:9000",
        "fs.s3a.bucket.lake.endpoint", "http://localhost:9000",
        "fs.s3a.path.style.access", "true",
        "fs.s3a.bucket.lake.path.style.access", "false",
        "fs.s3a.bucket.lake.access.key", "A",
        "fs.s3a.secret.key", "S");
    Settings lake = of("s3a://lake/", values);
    assertEquals(Optional.of("http://localhost:9000"), lake.endpoint());
    assertEquals(Optional.of(false), lake.pathStyle());
    assertEquals(new Login.Keys("A", "S", Optional.empty()), lake.login());
    assertEquals(Optional.of("https://minio.example:9000"), of("s3a://sea/", Map.of(
        "fs.s3a.endpoint", "https://minio.example:9000", "fs.s3a.bucket.lake.endpoint", "x")).endpoint());
  }

  @Test
  void anEndpointOfAwsOnlySaysTheRegion() throws IOException {
    Settings ireland = of("s3a://lake/", Map.of("fs.s3a.endpoint", "s3.eu-west-1.amazonaws.com"));
    assertEquals(Optional.empty(), ireland.endpoint());
    assertEquals(Optional.of("eu-west-1"), ireland.region());
    Settings central = of("s3a://lake/", Map.of("fs.s3a.endpoint", "https://s3.amazonaws.com/"));
    assertEquals(Optional.empty(), central.endpoint());
    assertEquals(Optional.empty(), central.region());
    Settings said = of("s3a://lake/", Map.of(
        "fs.s3a.endpoint", "s3-us-west-2.amazonaws.com", "fs.s3a.endpoint.region", "us-east-1"));
    assertEquals(Optional.of("us-east-1"), said.region());
  }

  @Test
  void anEndpointWithoutASchemeIsAskedByTlsUnlessThatIsOff() throws IOException {
    assertEquals(Optional.of("https://minio:9000"), of("s3a://lake/", Map.of("fs.s3a.endpoint", "minio:9000")).endpoint());
    assertEquals(Optional.of("http://minio:9000"), of("s3a://lake/", Map.of(
        "fs.s3a.endpoint", "minio:9000", "fs.s3a.connection.ssl.enabled", "false")).endpoint());
  }

  @Test
  void keysAreOnlyGoodTogetherAndNeverPrinted() throws IOException {
    assertThrows(IOException.class, () -> of("s3a://lake/", Map.of("fs.s3a.access.key", "A")));
    Settings settings = of("s3a://lake/", Map.of(
        "fs.s3a.access.key", "A", "fs.s3a.secret.key", "pa55word", "fs.s3a.session.token", "t0ken"));
    assertEquals(new Login.Keys("A", "pa55word", Optional.of("t0ken")), settings.login());
    assertFalse(settings.toString().contains("pa55word"));
    assertFalse(settings.toString().contains("t0ken"));
  }

  @Test
  void theProviderOfNoCredentialsMeansNone() throws IOException {
    assertEquals(new Login.Anonymous(), of("s3a://lake/", Map.of(
        "fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider")).login());
    assertEquals(new Login.Found(), of("s3a://lake/", Map.of(
        "fs.s3a.aws.credentials.provider", "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider")).login());
    assertEquals(new Login.Anonymous(), of("gs://lake/", Map.of("fs.gs.auth.type", "UNAUTHENTICATED")).login());
  }

  @Test
  void aProviderThatCannotBeAskedIsRefusedByItsName() {
    for (String provider : new String[] {
        "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider", "com.example.OurCredentialsProvider"}) {
      IOException refused = assertThrows(IOException.class, () -> of("s3a://lake/", Map.of(
          "fs.s3a.aws.credentials.provider",
          "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,\n " + provider)));
      assertTrue(refused.getMessage().contains(provider), refused::toString);
    }
  }

  @Test
  void keysComeFromCredentialProvidersToo(@TempDir Path folder) throws Exception {
    Configuration conf = new Configuration(false);
    String provider = "localjceks://file" + folder.resolve("keys.jceks");
    conf.set("fs.s3a.security.credential.provider.path", provider);
    Configuration makes = new Configuration(false);
    makes.set(CredentialProviderFactory.CREDENTIAL_PROVIDER_PATH, provider);
    CredentialProvider keys = CredentialProviderFactory.getProviders(makes).get(0);
    keys.createCredentialEntry("fs.s3a.access.key", "A".toCharArray());
    keys.createCredentialEntry("fs.s3a.bucket.lake.secret.key", "S".toCharArray());
    keys.flush();
    assertEquals(new Login.Keys("A", "S", Optional.empty()), Settings.of(URI.create("s3a://lake/"), conf).login());
  }

  @Test
  void aServiceAccountComesFromItsFileOrItsParts(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("account.json"), "{\"type\":\"service_account\"}");
    assertEquals(
        new Login.ServiceAccount("{\"type\":\"service_account\"}"),
        of("gs://lake/", Map.of("fs.gs.auth.service.account.json.keyfile", file.toString())).login());
    Login parts = of("gs://lake/", Map.of(
        "fs.gs.auth.service.account.email", "a@b",
        "fs.gs.auth.service.account.private.key.id", "1",
        "fs.gs.auth.service.account.private.key", "-----BEGIN-----\\nMII\n-----END-----")).login();
    String json = assertInstanceOf(Login.ServiceAccount.class, parts).json();
    assertTrue(json.contains("\"private_key\":\"-----BEGIN-----\\nMII\\n-----END-----\""), json);
    assertFalse(parts.toString().contains("MII"));
    assertThrows(IOException.class, () -> of("gs://lake/", Map.of(
        "fs.gs.auth.service.account.json.keyfile", folder.resolve("none").toString())));
  }

  @Test
  void googlesOwnEndpointIsLeftToTheLibrary() throws IOException {
    assertEquals(Optional.empty(), of("gs://lake/", Map.of("fs.gs.storage.root.url", "https://storage.googleapis.com/")).endpoint());
    assertEquals(Optional.of("http://localhost:4443"), of("gs://lake/", Map.of(
        "fs.gs.storage.root.url", "http://localhost:4443/")).endpoint());
  }

  @Test
  void theProjectPaysOnlyWhereTheRequesterDoes() throws IOException {
    assertEquals(Optional.empty(), of("gs://lake/", Map.of("fs.gs.project.id", "p")).userProject());
    assertEquals(Optional.of("p"), of("gs://lake/", Map.of(
        "fs.gs.project.id", "p", "fs.gs.requester.pays.mode", "ENABLED")).userProject());
  }

  @Test
  void whatDescribesNewFilesIsTakenOver() throws IOException {
    Settings settings = of("s3a://lake/", Map.of(
        "fs.s3a.acl.default", "BucketOwnerFullControl",
        "fs.s3a.create.storage.class", "intelligent_tiering",
        "fs.s3a.block.size", "64M",
        "fs.s3a.encryption.algorithm", "SSE-KMS",
        "fs.s3a.encryption.key", "arn:key",
        "fs.s3a.performance.flags", "mkdir, create"));
    assertEquals(Optional.of("bucket-owner-full-control"), settings.files().acl());
    assertEquals(Optional.of("INTELLIGENT_TIERING"), settings.files().storageClass());
    assertEquals(64 << 20, settings.files().blockBytes());
    assertEquals(new Settings.Encryption(Optional.of("SSE-KMS"), Optional.of("arn:key")), settings.encryption());
    assertTrue(settings.files().skipsChecks());
  }
}
