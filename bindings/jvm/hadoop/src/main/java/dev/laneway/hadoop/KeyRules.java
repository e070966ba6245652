package dev.laneway.hadoop;

import java.io.IOException;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;

/**
 * Sorts the keys of S3A and of the connectors for GCS and Azure into three kinds. Supported keys have an effect. Keys that change
 * neither the identity, the route nor the result of requests are ignored. All others are refused by name, because
 * requests could otherwise run under the wrong identity or go to the wrong server.
 */
final class KeyRules {
  /** Laneway's own key, which lists the names of unsupported keys to ignore. */
  static final String IGNORED = "fs.laneway.ignored.keys";

  /** The beginning of Laneway's own keys. */
  private static final String OWN = "fs.laneway.";

  /** Laneway's own keys. */
  private static final Names OWN_KEYS = new Names("""
      fs.laneway.memory fs.laneway.connections.maximum fs.laneway.bandwidth.limit fs.laneway.ignored.keys""");

  /** A key with more wrong letters than this isn't taken for a misspelling of another key. */
  private static final int WRONG_LETTERS_MAX = 3;

  /** The treatment of a key. */
  enum Rule {
    SUPPORTED,
    HARMLESS,
    REFUSED,
    /** Refused, unless the key may belong to another bucket or container. */
    UNKNOWN
  }

  /** Keys of S3A that have an effect. A name that ends in a star stands for all keys that begin so. */
  private static final Names S3_SUPPORTED = new Names("""
      access.key secret.key session.token aws.credentials.provider security.credential.provider.path
      assumed.role.arn assumed.role.credentials.provider assumed.role.external.id assumed.role.policy
      assumed.role.session.duration assumed.role.session.name assumed.role.sts.endpoint assumed.role.sts.endpoint.region
      endpoint endpoint.region endpoint.fips path.style.access connection.ssl.enabled
      auth.profile.file auth.profile.name accesspoint.arn accesspoint.required
      proxy.host proxy.port proxy.username proxy.password proxy.ssl.enabled
      requester.pays.enabled acl.default create.storage.class object.content.encoding
      encryption.algorithm encryption.key server-side-encryption-algorithm server-side-encryption.key
      block.size bulk.delete.page.size create.performance performance.flags experimental.input.fadvise
      etag.checksum.enabled committer.abort.pending.uploads""");

  private static final Names S3_HARMLESS = new Names("""
      impl impl.disable.cache
      attempts.maximum retry.*
      connection.acquisition.timeout connection.establish.timeout connection.expect.continue connection.idle.time
      connection.keepalive connection.maximum connection.part.upload.timeout connection.request.timeout
      connection.timeout connection.ttl socket.recv.buffer socket.send.buffer ssl.channel.mode
      threads.* max.total.tasks executor.capacity paging.maximum list.version
      multipart.* multiobjectdelete.enable fast.* buffer.dir
      readahead.range input.* prefetch.* vectored.* analytics.accelerator.* select.*
      bucket.probe change.detection.* checksum.* create.checksum.algorithm create.conditional.enabled create.header.*
      create.multipart request.md5.header io.rate.limit experimental.aws.s3.throttling failinject.* internal.*
      copy.from.local.enabled optimized.copy.from.local.enabled rename.*
      committer.* directory.* downgrade.syncable.exceptions ext.multipart.commit.consumes.upload.id
      cross.region.access.enabled s3express.* classloader.isolation user.agent.prefix
      audit.enabled audit.referrer.enabled audit.referrer.filter audit.reject.out.of.span.operations
      audit.service.classname authoritative.path metadatastore.* s3guard.*
      delegation.tokens.* delegation.token.endpoint delegation.token.region delegation.token.role.arn
      encryption.cse.* access.grants.fallback.to.iam http.signer.class ddb.signing-algorithm""");

  private static final Names GS_SUPPORTED = new Names("""
      auth.type auth.null.enable auth.service.account.json.keyfile auth.service.account.email
      auth.service.account.private.key.id auth.service.account.private.key
      auth.workload.identity.federation.credential.config.file auth.impersonation.service.account
      auth.impersonation.service.account.for.user.* auth.impersonation.service.account.for.group.*
      security.credential.provider.path
      storage.root.url storage.http.headers.* proxy.address proxy.username proxy.password
      requester.pays.mode requester.pays.project.id requester.pays.buckets project.id
      encryption.algorithm encryption.key block.size bulk.delete.page.size create.items.conflict.check.enable
      working.dir""");

  private static final Names GS_HARMLESS = new Names("""
      impl impl.disable.cache application.name.suffix
      auth.client.id auth.client.secret auth.refresh.token authorization.handler.properties.*
      batch.* bidi.* bucket.delete.enable checksum.type client.type client.upload.type cloud.logging.enable
      cooperative.locking.expiration.* cooperative.locking.max.* copy.* create.marker.files.enable
      encryption.key.hash event.* fadvise.* glob.* grpc.* hierarchical.namespace.* http.* implicit.* inputstream.*
      io.buffer io.buffersize.* lazy.* list.* marker.* max.* metadata.cache.* metrics.* operation.* outputstream.*
      parent.* path.encoding performance.* read.* reported.* rewrite.* status.* storage.client.* system.bucket threads.*
      tracelog.* vectored.* write.* delete.* rename.* enable.*""");

  /** Documented keys that are refused. */
  private static final Names S3_REFUSED = new Names("""
      audit.execution.interceptors audit.request.handlers aws.credentials.provider.mapping
      client.s3.custom.headers client.sts.custom.headers custom.signers delegation.token.binding encryption.context
      proxy.domain proxy.workstation s3.client.factory.impl s3.signing-algorithm signing-algorithm sts.signing-algorithm""");

  private static final Names GS_REFUSED = new Names("""
      auth.access.token.provider auth.access.token.provider.impl auth.service.account.keyfile
      authorization.handler.impl config.override.file delegation.token.binding""");

  /** Keys that are refused unless they have this value, which is the connectors' default. */
  private static final Map<String, String> S3_REFUSED_UNLESS =
      Map.of("access.grants.enabled", "false", "http.signer.enabled", "false");

  /** Keys of ABFS and WASB, without the endings for an account or a container. */
  private static final Names AZURE_SUPPORTED = new Names("""
      abfs.endpoint always.use.https account.auth.type account.key account.keyprovider
      sas sas.fixed.token sas.token.provider.type
      account.oauth.provider.type account.oauth2.client.endpoint account.oauth2.client.id account.oauth2.client.secret
      account.oauth2.msi.authority account.oauth2.msi.endpoint account.oauth2.msi.tenant account.oauth2.token.file
      block.size read.policy security.credential.provider.path""");

  private static final Names AZURE_HARMLESS = new Names("""
      impl impl.disable.cache abfs.latency.track abfs.impl
      account.expect.header.enabled account.hns.enabled account.operation.idle.timeout account.throttling.enabled
      analysis.period apache.http.* appendblob.directories atomic.rename.* blob.* block.location.* block.upload.*
      buffer.dir buffered.* client.correlationid cluster.* concurrentRequestCount.* createRemote* custom.token.fetch.*
      data.blocks.buffer disable.outputstream.flush enable.* fns.* footer.read.* http.* identity.transformer.*
      infinite-lease.directories ingress.* io.* lease.threads list.max.results local.sas.key.mode metric.* metrics.*
      networking.library oauth.token.fetch.* page.* prefetch.* read.* readahead.* readaheadqueue.* rename.*
      sas.expiry.period sas.token.renew.period.for.streams saskey.* secure.mode selfthrottling.* skipUserGroup*
      ssl.channel.mode static.retry.* tail.latency.* tracingheader.format use.upn user.agent.prefix write.*
      authorization.caching.enable""");

  private static final Names AZURE_REFUSED = new Names("""
      account.oauth2.client.assertion.provider.type account.oauth2.refresh.token account.oauth2.refresh.token.endpoint
      account.oauth2.user.name account.oauth2.user.password delegation.token.provider.type
      encryption.context.provider.type encryption.encoded.client-provided-key encryption.encoded.client-provided-key-sha
      shellkeyprovider.script""");

  /** The flags of hadoop-azure that ask Hadoop's or Ranger's servers who may do what. */
  private static final Map<String, String> AZURE_REFUSED_UNLESS =
      Map.of("authorization", "false", "enable.delegation.token", "false");

  private static final Map<String, String> GS_REFUSED_UNLESS = Map.of(
      "auth.service.account.enable", "true",
      "cooperative.locking.enable", "false",
      "enable.service.account.auth", "true",
      "storage.service.path", "storage/v1/",
      "token.server.url", "https://oauth2.googleapis.com/token");

  private KeyRules() {}

  /** The lists of a store's keys. */
  private record Lists(Names supported, Names harmless, Names refused, Map<String, String> refusedUnless) {
    static Lists of(Settings.Store store) {
      return switch (store) {
        case S3 -> new Lists(S3_SUPPORTED, S3_HARMLESS, S3_REFUSED, S3_REFUSED_UNLESS);
        case GCS -> new Lists(GS_SUPPORTED, GS_HARMLESS, GS_REFUSED, GS_REFUSED_UNLESS);
        case AZURE -> new Lists(AZURE_SUPPORTED, AZURE_HARMLESS, AZURE_REFUSED, AZURE_REFUSED_UNLESS);
      };
    }
  }

  /** Returns the treatment of a key with this value. The key is without its beginning, such as {@code fs.s3a}. */
  static Rule of(Settings.Store store, String key, String value) {
    Lists lists = Lists.of(store);
    String harmless = lists.refusedUnless().get(key);
    if (harmless != null) {
      return harmless.equalsIgnoreCase(value) ? Rule.HARMLESS : Rule.REFUSED;
    }
    if (lists.supported().contains(key)) {
      return Rule.SUPPORTED;
    }
    if (lists.harmless().contains(key)) {
      return Rule.HARMLESS;
    }
    return lists.refused().contains(key) ? Rule.REFUSED : Rule.UNKNOWN;
  }

  /**
   * Checks the keys that are set for a bucket.
   *
   * @throws IOException for a key that can neither be supported nor ignored
   */
  static void check(Settings.Store store, Values values, Configuration conf) throws IOException {
    Set<String> ignored = new HashSet<>(conf.getTrimmedStringCollection(IGNORED));
    for (Map.Entry<String, String> one : conf) {
      String name = one.getKey();
      if (name.startsWith(OWN) && !OWN_KEYS.contains(name) && !ignored.contains(name)) {
        String nearest = OWN_KEYS.nearest(name).map(key -> "; did you mean " + key + "?").orElse("");
        throw new IOException(name + " isn't a key of Laneway" + nearest);
      }
    }
    for (Map.Entry<String, Values.Value> one : values.all().entrySet()) {
      String name = one.getValue().name();
      Rule rule = of(store, one.getKey(), one.getValue().text());
      boolean isOfOther = isOfLongerBucket(store, name, one.getKey()) || isOfOtherContainer(store, values, name, one.getKey());
      boolean isRefused = rule == Rule.REFUSED || (rule == Rule.UNKNOWN && !isOfOther);
      if (isRefused && !ignored.contains(name)) {
        throw new IOException(name + " isn't supported, and may change the identity or the destination of requests."
            + (rule == Rule.UNKNOWN ? spelling(store, name, one.getKey()) : "")
            + " If Laneway may ignore it, add its name to " + IGNORED);
      }
    }
  }

  /** Returns a sentence that asks to check the spelling of a key, and names the nearest supported key. */
  private static String spelling(Settings.Store store, String name, String key) {
    String beginning = name.substring(0, name.indexOf(key));
    return " Check the spelling" + Lists.of(store).supported().nearest(key).map(near -> ": did you mean " + beginning + near + "?").orElse(".");
  }

  /**
   * Returns whether a key may belong to a bucket whose name contains a dot. For example, {@code
   * fs.s3a.bucket.logs.eu.endpoint} sets the endpoint of {@code logs.eu}, so it doesn't apply to {@code logs}.
   */
  private static boolean isOfLongerBucket(Settings.Store store, String name, String key) {
    if (!name.startsWith(store.family + ".bucket.")) {
      return false;
    }
    for (int dot = key.indexOf('.'); dot >= 0; dot = key.indexOf('.', dot + 1)) {
      if (of(store, key.substring(dot + 1), "") != Rule.UNKNOWN) {
        return true;
      }
    }
    return false;
  }

  /**
   * Returns whether a key may belong to another container of the account. For example, {@code
   * fs.azure.sas.sea.mine.blob.core.windows.net} is the token of the container {@code sea}, so it doesn't apply to {@code
   * lake}.
   */
  private static boolean isOfOtherContainer(Settings.Store store, Values values, String name, String key) {
    int dot = key.lastIndexOf('.');
    return dot > 0 && values.namesOnlyAccount(name) && of(store, key.substring(0, dot), "") != Rule.UNKNOWN;
  }

  /** Names of keys, and beginnings of names. */
  private static final class Names {
    private final Set<String> whole = new HashSet<>();
    private final Set<String> beginnings = new HashSet<>();

    Names(String names) {
      for (String name : names.strip().split("\\s+")) {
        if (name.endsWith("*")) {
          beginnings.add(name.substring(0, name.length() - 1));
        } else {
          whole.add(name);
        }
      }
    }

    /** Returns the name with the fewest different letters, if there are few. */
    Optional<String> nearest(String key) {
      return whole.stream()
          .filter(name -> wrongLetters(name, key) <= WRONG_LETTERS_MAX)
          .min(Comparator.<String>comparingInt(name -> wrongLetters(name, key)).thenComparing(name -> name));
    }

    /** Returns the number of letters to insert, remove or replace (Levenshtein's distance). */
    private static int wrongLetters(String one, String other) {
      int[] row = IntStream.rangeClosed(0, other.length()).toArray();
      for (int i = 1; i <= one.length(); i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= other.length(); j++) {
          int replaced = diagonal + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
          diagonal = row[j];
          row[j] = Math.min(replaced, Math.min(row[j], row[j - 1]) + 1);
        }
      }
      return row[other.length()];
    }

    boolean contains(String key) {
      return whole.contains(key) || beginnings.stream().anyMatch(key::startsWith);
    }
  }
}
