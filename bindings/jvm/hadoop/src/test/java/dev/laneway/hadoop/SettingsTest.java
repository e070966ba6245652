package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.AssumedRole;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PrivilegedAction;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.alias.CredentialProvider;
import org.apache.hadoop.security.alias.CredentialProviderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
    for (String scheme : new String[] {"az", "abfs", "abfss", "wasb", "wasbs", "laneway+abfss"}) {
      assertEquals(Settings.Store.AZURE, of(scheme + "://lake/x", Map.of()).store());
    }
    assertThrows(IOException.class, () -> of("hdfs://lake", Map.of()));
  }

  @Test
  void nothingIsSetWhereNothingIsSaid() throws IOException {
    Settings settings = of("s3a://lake/", Map.of());
    assertEquals("lake", settings.bucket());
    assertEquals(Optional.empty(), settings.endpoint());
    assertEquals(Optional.empty(), settings.region());
    assertEquals(Optional.empty(), settings.pathStyle());
    assertEquals(Login.Found.ANYWHERE, settings.login());
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

  private static Login login(Map<String, String> environment, String providers, String... more) throws IOException {
    Configuration conf = new Configuration(false);
    conf.set("fs.s3a.aws.credentials.provider", providers);
    for (int i = 0; i < more.length; i += 2) {
      conf.set("fs.s3a." + more[i], more[i + 1]);
    }
    return S3Login.of(new Values(conf, "fs.s3a", "lake"), environment);
  }

  private static final String SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider";
  private static final String ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider";
  private static final String INSTANCE = "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider";
  private static final String ROLE = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider";
  private static final String ENVIRONMENT =
      "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider";
  private static final String PROFILE = "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider";
  private static final String DEFAULT = "com.amazonaws.auth.DefaultAWSCredentialsProviderChain";
  private static final Map<String, String> VARIABLES = Map.of("AWS_ACCESS_KEY_ID", "E", "AWS_SECRET_ACCESS_KEY", "S");

  @Test
  void theFirstProviderThatHasCredentialsCounts() throws IOException {
    Login keys = new Login.Keys("A", "S", Optional.empty());
    String[] set = {"access.key", "A", "secret.key", "S"};
    assertEquals(keys, login(VARIABLES, SIMPLE + "," + ENVIRONMENT, set));
    assertEquals(keys, login(Map.of(), ENVIRONMENT + ",\n " + SIMPLE + ", " + INSTANCE, set));
    assertEquals(new Login.Anonymous(), login(VARIABLES, SIMPLE + "," + ANONYMOUS));
    assertEquals(new Login.Anonymous(), of("gs://lake/", Map.of("fs.gs.auth.type", "UNAUTHENTICATED")).login());
    assertEquals(Login.Found.ANYWHERE, login(Map.of(), SIMPLE + "," + DEFAULT));
    Login.Found environment = assertInstanceOf(Login.Found.class, login(VARIABLES, ENVIRONMENT + "," + SIMPLE, set));
    assertEquals("true", environment.variables().get("AWS_EC2_METADATA_DISABLED"));
    assertFalse(environment.variables().containsKey("AWS_ACCESS_KEY_ID"));
  }

  @Test
  void thePlacesThatNoProviderNamesAreNotSearched() throws IOException {
    Login.Found instance = assertInstanceOf(Login.Found.class, login(VARIABLES, SIMPLE + "," + INSTANCE));
    assertEquals("", instance.variables().get("AWS_ACCESS_KEY_ID"));
    assertEquals("/dev/null", instance.variables().get("AWS_SHARED_CREDENTIALS_FILE"));
    assertFalse(instance.variables().containsKey("AWS_EC2_METADATA_DISABLED"));
    Login.Found profile = assertInstanceOf(
        Login.Found.class, login(VARIABLES, PROFILE, "auth.profile.name", "p"));
    assertEquals("p", profile.variables().get("AWS_PROFILE"));
    assertEquals("true", profile.variables().get("AWS_EC2_METADATA_DISABLED"));
    assertFalse(profile.variables().containsKey("AWS_SHARED_CREDENTIALS_FILE"));
    IOException nothing = assertThrows(IOException.class, () -> login(Map.of(), SIMPLE + "," + ENVIRONMENT));
    assertTrue(nothing.getMessage().contains("none of its providers"), nothing::toString);
  }

  @Test
  void anOrderThatCannotBeKeptIsRefusedByName() {
    String[] set = {"access.key", "A", "secret.key", "S"};
    for (String providers : new String[] {
        INSTANCE + "," + SIMPLE, INSTANCE + "," + PROFILE, INSTANCE + "," + ENVIRONMENT, PROFILE + "," + ANONYMOUS}) {
      IOException refused = assertThrows(IOException.class, () -> login(VARIABLES, providers, set));
      String last = providers.substring(providers.indexOf(',') + 1);
      assertTrue(refused.getMessage().contains(last + " must come earlier"), refused::toString);
    }
  }

  @Test
  void aRoleIsAssumedByTheKeysThatAreNamedForIt() throws IOException {
    Login.Role role = assertInstanceOf(Login.Role.class, login(Map.of(), ROLE,
        "access.key", "A", "secret.key", "S",
        "assumed.role.arn", "arn:aws:iam::1:role/r",
        "assumed.role.session.name", "job",
        "assumed.role.session.duration", "2h",
        "assumed.role.external.id", "x",
        "assumed.role.policy", "{}",
        "assumed.role.sts.endpoint", "sts.eu-west-2.amazonaws.com",
        "assumed.role.sts.endpoint.region", "eu-west-2"));
    assertEquals(new Login.Keys("A", "S", Optional.empty()), role.base());
    assertEquals(
        AssumedRole.of("arn:aws:iam::1:role/r").sessionName("job").duration(Duration.ofHours(2)).externalId("x").policy("{}")
            .stsEndpoint("https://sts.eu-west-2.amazonaws.com").stsRegion("eu-west-2"),
        role.role());
    Login.Role byInstance = assertInstanceOf(Login.Role.class, login(Map.of(), ROLE,
        "assumed.role.arn", "arn:aws:iam::1:role/r", "assumed.role.credentials.provider", INSTANCE));
    assertInstanceOf(Login.Found.class, byInstance.base());
    assertThrows(IOException.class, () -> login(VARIABLES, ROLE));
    assertThrows(IOException.class, () -> login(VARIABLES, ROLE,
        "assumed.role.arn", "arn:aws:iam::1:role/r", "assumed.role.credentials.provider", ROLE));
  }

  @Test
  void aProviderThatCannotBeAskedIsRefusedByItsName() {
    for (String provider : new String[] {"org.apache.hadoop.fs.s3a.auth.OtherProvider", "com.example.OurCredentialsProvider"}) {
      IOException refused = assertThrows(IOException.class, () -> login(Map.of(), SIMPLE + ",\n " + provider));
      assertTrue(refused.getMessage().contains(provider), refused::toString);
    }
  }

  @Test
  void aServiceAccountIsImpersonatedForItsUserItsGroupOrAll() throws IOException {
    String key = "fs.gs.auth.impersonation.service.account";
    UserGroupInformation alice = UserGroupInformation.createUserForTesting("alice", new String[] {"staff", "all"});
    Map<String, String> accounts = Map.of(
        key + ".for.user.alice", "user@p", key + ".for.group.all", "group@p", key, "any@p", "fs.gs.auth.type", "COMPUTE_ENGINE");
    Map<String, String> groups = new HashMap<>(accounts);
    groups.remove(key + ".for.user.alice");
    for (Map.Entry<String, Map<String, String>> one : Map.of(
        "user@p", accounts, "group@p", groups, "any@p", Map.of(key, "any@p", key + ".for.user.bob", "bob@p")).entrySet()) {
      Login login = alice.doAs((PrivilegedAction<Login>) () -> {
        try {
          return of("gs://lake/", one.getValue()).login();
        } catch (IOException failed) {
          throw new UncheckedIOException(failed);
        }
      });
      assertEquals(one.getKey(), assertInstanceOf(Login.Impersonated.class, login).account());
    }
    assertThrows(IOException.class, () -> of("gs://lake/", Map.of(key, "any@p", "fs.gs.auth.type", "UNAUTHENTICATED")));
  }

  @Test
  void theMachinesIdentityIsNotHiddenByAFile() throws IOException {
    Login.Found machine = assertInstanceOf(
        Login.Found.class, of("gs://lake/", Map.of("fs.gs.auth.type", "COMPUTE_ENGINE")).login());
    assertEquals("", machine.variables().get("GOOGLE_APPLICATION_CREDENTIALS"));
    Login.Found federated = assertInstanceOf(Login.Found.class, of("gs://lake/", Map.of(
        "fs.gs.auth.type", "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE",
        "fs.gs.auth.workload.identity.federation.credential.config.file", "/etc/federation.json")).login());
    assertEquals(Map.of("GOOGLE_APPLICATION_CREDENTIALS", "/etc/federation.json"), federated.variables());
    for (String type : new String[] {"ACCESS_TOKEN_PROVIDER", "USER_CREDENTIALS"}) {
      IOException refused = assertThrows(IOException.class, () -> of("gs://lake/", Map.of("fs.gs.auth.type", type)));
      assertTrue(refused.getMessage().contains(type), refused::toString);
    }
  }

  @Test
  void keysThatGooglesLibrariesShareCountToo(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("account.json"), "{}");
    String shared = "google.cloud.auth.service.account.json.keyfile";
    assertEquals(new Login.ServiceAccount("{}"), of("gs://lake/", Map.of(shared, file.toString())).login());
  }

  @Test
  void aProxyIsOneUrlWhosePasswordIsNotPrinted() throws IOException {
    Settings s3 = of("s3a://lake/", Map.of(
        "fs.s3a.proxy.host", "proxy", "fs.s3a.proxy.port", "3128",
        "fs.s3a.proxy.username", "me@home", "fs.s3a.proxy.password", "pa55 word"));
    assertEquals("http://me%40home:pa55%20word@proxy:3128", s3.proxy().get().url());
    assertFalse(s3.toString().contains("pa55"));
    Settings secured = of("s3a://lake/", Map.of("fs.s3a.proxy.host", "proxy", "fs.s3a.proxy.ssl.enabled", "true"));
    assertEquals("https://proxy:443", secured.proxy().get().url());
    Settings gcs = of("gs://lake/", Map.of("fs.gs.proxy.address", "proxy:8080"));
    assertEquals("http://proxy:8080", gcs.proxy().get().url());
    assertThrows(IOException.class, () -> of("s3a://lake/", Map.of("fs.s3a.proxy.port", "3128")));
    assertThrows(IOException.class, () -> of("gs://lake/", Map.of(
        "fs.gs.proxy.address", "proxy:8080", "fs.gs.proxy.username", "me")));
  }

  @Test
  void anAccessPointStandsForItsBucket() throws IOException {
    String arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint/lakes";
    Map<String, String> values =
        Map.of("fs.s3a.bucket.lake.accesspoint.arn", arn, "fs.s3a.accesspoint.required", "true");
    assertEquals(arn, of("s3a://lake/", values).bucket());
    assertThrows(IOException.class, () -> of("s3a://sea/", values));
  }

  @Test
  void headersAndTheWorkingDirectoryAreTakenOver() throws IOException {
    Settings settings = of("gs://lake/", Map.of(
        "fs.gs.storage.http.headers.x-goog-custom-audit-job", "7", "fs.gs.working.dir", "/home"));
    assertEquals(Map.of("x-goog-custom-audit-job", "7"), settings.headers());
    assertEquals(Optional.of("/home"), settings.files().workingDirectory());
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
  void limitsOfTheEngineAreTakenOver() throws IOException {
    Settings settings = of("s3a://lake/", Map.of(
        "fs.laneway.memory", "256M", "fs.laneway.connections.maximum", "32", "fs.laneway.bandwidth.limit", "100M"));
    assertEquals(new Settings.Engine(Optional.of(256L << 20), Optional.of(32), Optional.of(100L << 20)), settings.engine());
    String set = Connection.builder(settings).toString();
    assertTrue(set.contains("memory, connections_max, bandwidth_limit"), set);
    assertThrows(IOException.class, () -> of("gs://lake/", Map.of("fs.laneway.memory", "0")));
  }

  @ParameterizedTest
  @CsvSource({
    "fs.laneway.memory, 10",
    "fs.s3a.endpoint, http://not a url",
    "fs.s3a.encryption.key, short"
  })
  void aBadValueIsReportedWithHadoopsKey(String key, String value) {
    Map<String, String> values = new HashMap<>(Map.of(key, value));
    if (key.startsWith("fs.s3a.encryption")) {
      values.put("fs.s3a.encryption.algorithm", "SSE-C");
    }
    IOException refused = assertThrows(IOException.class, () -> Connection.of(of("s3a://lake/", values)));
    assertTrue(refused.getMessage().contains(": " + key + ": "), refused::toString);
  }

  @Test
  void whatDescribesNewFilesIsTakenOver() throws IOException {
    Settings settings = of("s3a://lake/", Map.of(
        "fs.s3a.acl.default", "BucketOwnerFullControl",
        "fs.s3a.create.storage.class", "intelligent_tiering",
        "fs.s3a.object.content.encoding", "br",
        "fs.s3a.block.size", "64M",
        "fs.s3a.encryption.algorithm", "SSE-KMS",
        "fs.s3a.encryption.key", "arn:key",
        "fs.s3a.performance.flags", "mkdir, create"));
    assertEquals(Optional.of("bucket-owner-full-control"), settings.files().acl());
    assertEquals(Optional.of("INTELLIGENT_TIERING"), settings.files().storageClass());
    assertEquals(Optional.of("br"), settings.files().contentEncoding());
    assertEquals(64 << 20, settings.files().blockBytes());
    assertEquals(new Settings.Encryption(Optional.of("SSE-KMS"), Optional.of("arn:key")), settings.encryption());
    assertTrue(settings.files().skipsChecks());
  }

  private static final String AZURE = "abfss://lake@mine.dfs.core.windows.net/";
  private static final String OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2.";

  @Test
  void theUriOfAzureNamesContainerAndAccount() throws IOException {
    Settings dfs = of(AZURE, Map.of());
    assertEquals("lake@mine.blob.core.windows.net", dfs.bucket());
    assertEquals(Optional.of("mine"), dfs.account());
    assertEquals(Login.Found.ANYWHERE, dfs.login());
    assertEquals(dfs, of("wasbs://lake@mine.blob.core.windows.net/x", Map.of()));
    Settings plain = of("az://lake/", Map.of());
    assertEquals("lake", plain.bucket());
    assertEquals(Optional.empty(), plain.account());
    for (String uri : new String[] {"abfss://id:pa55word@mine.dfs.core.windows.net/", "abfss://@mine.dfs.core.windows.net/"}) {
      IOException refused = assertThrows(IOException.class, () -> of(uri, Map.of()));
      assertFalse(refused.getMessage().contains("pa55word"));
    }
  }

  @Test
  void keysOfAnAccountGoBeforeThoseOfAllAndThoseOfOthersAreIgnored() throws IOException {
    Map<String, String> values = Map.of(
        "fs.azure.account.key", "all",
        "fs.azure.account.key.theirs.dfs.core.windows.net", "theirs",
        "fs.azure.encryption.context.provider.type.theirs.dfs.core.windows.net", "com.example.Provider",
        "fs.azure.account.key.mine.dfs.core.windows.net", "pa55word");
    Settings settings = of(AZURE, values);
    assertEquals(new Login.Azure(Map.of("account_key", "pa55word")), settings.login());
    assertFalse((settings.toString() + settings.login()).contains("pa55word"));
    assertEquals(new Login.Azure(Map.of("account_key", "all")), of("abfss://lake@other.dfs.core.windows.net/", values).login());
    Map<String, String> blob = Map.of("fs.azure.account.key.mine.blob.core.windows.net", "k");
    assertEquals(new Login.Azure(Map.of("account_key", "k")), of("wasbs://lake@mine.blob.core.windows.net/", blob).login());
  }

  @Test
  void eachContainerOfAnAccountHasItsOwnKeys() throws IOException {
    Map<String, String> values = Map.of(
        "fs.azure.sas.lake.mine.blob.core.windows.net", "sig=lake",
        "fs.azure.sas.sea.mine.blob.core.windows.net", "sig=sea",
        "fs.azure.sas.fixed.token.pond.mine.dfs.core.windows.net", "sig=pond",
        "fs.azure.encryption.context.provider.type.pond.mine.dfs.core.windows.net", "com.example.Provider");
    assertEquals(new Login.Azure(Map.of("sas_token", "sig=lake")), of("wasbs://lake@mine.blob.core.windows.net/", values).login());
    assertEquals(new Login.Azure(Map.of("sas_token", "sig=sea")), of("abfss://sea@mine.dfs.core.windows.net/", values).login());
    IOException refused = assertThrows(IOException.class, () -> of("abfss://pond@mine.dfs.core.windows.net/", values));
    assertTrue(refused.getMessage().contains("fs.azure.encryption.context.provider.type.pond"), refused::toString);
  }

  @ParameterizedTest
  @CsvSource({
    "fs.azure.sas.sea",
    "fs.azure.sas.sea.lake.mine.dfs.core.windows.net",
    "fs.azure.heard.of.by.nobody.mine.dfs.core.windows.net"
  })
  void anUnknownKeyOfAzureIsNotTakenForOneOfAnotherContainer(String key) {
    IOException refused = assertThrows(IOException.class, () -> of(AZURE, Map.of(key, "1")));
    assertTrue(refused.getMessage().startsWith(key + " isn't supported"), refused::toString);
  }

  @Test
  void anEndpointOfAzureByAddressHasTheAccountInItsPath() throws IOException {
    Map<String, String> values = Map.of("fs.azure.abfs.endpoint", "127.0.0.1:10000", "fs.azure.always.use.https", "false");
    Settings settings = of(AZURE, values);
    assertEquals(Optional.of("http://127.0.0.1:10000/mine"), settings.endpoint());
    assertEquals("lake", settings.bucket());
    assertEquals(Optional.of("https://files.example.com"), of(AZURE, Map.of("fs.azure.abfs.endpoint", "files.example.com")).endpoint());
  }

  @Test
  void eachKindOfAzuresCredentialsIsRead() throws IOException {
    assertEquals(
        new Login.Azure(Map.of("sas_token", "sig=s")),
        of(AZURE, Map.of(
            "fs.azure.account.auth.type.mine.dfs.core.windows.net", "SAS",
            "fs.azure.sas.fixed.token.lake.mine.dfs.core.windows.net", "sig=s")).login());
    assertEquals(
        new Login.Azure(Map.of("sas_token", "sig=w")),
        of("wasbs://lake@mine.blob.core.windows.net/", Map.of("fs.azure.sas.lake.mine.blob.core.windows.net", "sig=w")).login());
    assertEquals(
        new Login.Azure(Map.of(
            "authority_host", "https://login.microsoftonline.com", "tenant_id", "t", "client_id", "c", "client_secret", "s")),
        of(AZURE, Map.of(
            "fs.azure.account.auth.type", "OAuth",
            "fs.azure.account.oauth.provider.type", OAUTH + "ClientCredsTokenProvider",
            "fs.azure.account.oauth2.client.endpoint", "https://login.microsoftonline.com/t/oauth2/v2.0/token",
            "fs.azure.account.oauth2.client.id", "c",
            "fs.azure.account.oauth2.client.secret", "s")).login());
    assertEquals(
        new Login.Azure(Map.of(
            "tenant_id", "t", "client_id", "c", "federated_token_file", "/var/run/secrets/azure/tokens/azure-identity-token")),
        of(AZURE, Map.of(
            "fs.azure.account.auth.type", "OAuth",
            "fs.azure.account.oauth.provider.type", OAUTH + "WorkloadIdentityTokenProvider",
            "fs.azure.account.oauth2.msi.tenant", "t",
            "fs.azure.account.oauth2.client.id", "c")).login());
    assertEquals(
        new Login.Azure(Map.of("use_managed_identity", "true", "client_id", "c")),
        of(AZURE, Map.of(
            "fs.azure.account.auth.type", "OAuth",
            "fs.azure.account.oauth.provider.type", OAUTH + "MsiTokenProvider",
            "fs.azure.account.oauth2.client.id", "c")).login());
  }

  @ParameterizedTest
  @CsvSource({
    "fs.azure.account.oauth2.client.id",
    "fs.azure.account.oauth2.client.secret.mine.dfs.core.windows.net",
    "fs.azure.account.oauth.provider.type"
  })
  void anIdentityOfEntraNeedsTheTypeOAuth(String key) throws IOException {
    IOException refused = assertThrows(IOException.class, () -> of(AZURE, Map.of(key, "pa55word")));
    assertTrue(refused.getMessage().startsWith(key + " is set, but fs.azure.account.auth.type isn't"), refused::toString);
    assertFalse(refused.getMessage().contains("pa55word"));
    // The identity may be that of other accounts.
    assertEquals(
        new Login.Azure(Map.of("account_key", "k")), of(AZURE, Map.of(key, "pa55word", "fs.azure.account.key", "k")).login());
    for (String other : new String[] {"theirs", "sea.mine"}) {
      String ofOther = "fs.azure.account.oauth2.client.id." + other + ".dfs.core.windows.net";
      assertEquals(Login.Found.ANYWHERE, of(AZURE, Map.of(ofOther, "c")).login());
    }
  }

  @ParameterizedTest
  @CsvSource({
    "fs.azure.account.auth.type, Custom, SharedKey",
    "fs.azure.account.auth.type, SharedKey, fs.azure.account.key has no key",
    "fs.azure.account.auth.type, SAS, fs.azure.sas.fixed.token has no token",
    "fs.azure.account.auth.type, OAuth, fs.azure.account.oauth.provider.type",
    "fs.azure.account.keyprovider, com.example.Keys, fs.azure.account.keyprovider",
    "fs.azure.sas.token.provider.type, com.example.Tokens, fs.azure.sas.token.provider.type",
    "fs.azure.account.oauth2.user.password, pa55word, isn't supported"
  })
  void credentialsOfAzureThatLanewayLacksAreRefusedByName(String key, String value, String says) {
    IOException refused = assertThrows(IOException.class, () -> of(AZURE, Map.of(key, value)));
    assertTrue(refused.getMessage().contains(says), refused::toString);
    assertFalse(refused.getMessage().contains("pa55word"));
  }
}
