package dev.laneway.hadoop;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.alias.CredentialProviderFactory;

/**
 * The values of a filesystem's keys in Hadoop's configuration. {@code fs.s3a.bucket.NAME.KEY}, for one bucket,
 * overrides {@code fs.s3a.KEY}, and likewise for {@code fs.gs}. {@code fs.azure.KEY.HOST}, for one account of Azure,
 * overrides {@code fs.azure.KEY}. Google's libraries for Hadoop share keys about credentials, proxies and token servers.
 * Such keys may also begin with {@code google.cloud}.
 */
final class Values {
  /** A value, and the full name of the key under which the configuration has it. */
  record Value(String name, String text) {}

  /** The name that a configuration reports as the source of values from Hadoop's own file of defaults. */
  private static final String DEFAULTS = "core-default.xml";

  /** The beginning of keys that Google's libraries for Hadoop share. */
  private static final String SHARED = "google.cloud.";

  /** The ending of a key for one account of Azure: the host of its DFS or Blob service. */
  private static final Pattern OTHER_ACCOUNT = Pattern.compile("\\.(dfs|blob)\\.[a-z0-9-]+\\.[a-z0-9-]+\\.[a-z0-9-]+$");

  private static final List<String> SHARED_KEYS = List.of("auth.", "proxy.", "token.");

  private final Configuration conf;
  private final boolean isShared;
  /** The beginning of the keys for one bucket; empty if endings name the account instead. */
  private final Optional<String> ours;
  private final String all;

  /** The endings of the keys for one account, with a dot in front. */
  private final List<String> endings;

  /**
   * @param family the beginning of the keys: {@code fs.s3a} or {@code fs.gs}
   * @param bucket the bucket's name
   */
  Values(Configuration conf, String family, String bucket) {
    this(conf, family, Optional.of(family + ".bucket." + bucket + "."), List.of());
  }

  private Values(Configuration conf, String family, Optional<String> ours, List<String> endings) {
    this.ours = ours;
    this.all = family + ".";
    this.endings = endings;
    this.isShared = family.equals("fs.gs");
    this.conf = conf;
  }

  /**
   * Returns the values for an account of Azure.
   *
   * @param endings the endings of the account's keys, such as {@code mine.dfs.core.windows.net}; the first one that is set
   *     counts
   */
  static Values ofAccount(Configuration conf, String family, List<String> endings) {
    return new Values(conf, family, Optional.empty(), endings.stream().map(ending -> "." + ending).toList());
  }

  /**
   * Returns the value of a key, without surrounding spaces; empty if it isn't set, or is blank. Values from Hadoop's
   * own file of defaults are ignored, because the user didn't choose them. For example, one of these defaults says that
   * S3A doesn't put bucket names into paths.
   */
  Optional<String> text(String key) {
    return value(key).map(Value::text);
  }

  /**
   * Does the same for a flag.
   *
   * @throws IllegalArgumentException for a text other than true and false; the message names the key
   */
  Optional<Boolean> flag(String key) {
    return value(key).map(Values::flag);
  }

  private static boolean flag(Value value) {
    return switch (value.text().toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException(value.name() + " must be true or false, and is " + value.text());
    };
  }

  boolean isOn(String key) {
    return flag(key).orElse(false);
  }

  /**
   * Returns a number of bytes, which may end in a letter: {@code 64M}.
   *
   * @throws IllegalArgumentException for a text that isn't a size; the message names the key
   */
  long bytes(String key, long otherwise) {
    return bytes(conf, set(key), otherwise);
  }

  /** Does the same for a key under its full name. */
  static long bytes(Configuration conf, String name, long otherwise) {
    return named(conf, name, () -> conf.getLongBytes(name, otherwise));
  }

  /**
   * Returns a whole number.
   *
   * @throws IllegalArgumentException for a text that isn't a number; the message names the key
   */
  int number(String key, int otherwise) {
    String name = set(key);
    return named(conf, name, () -> conf.getInt(name, otherwise));
  }

  private static <T> T named(Configuration conf, String name, Supplier<T> number) {
    try {
      return number.get();
    } catch (IllegalArgumentException unreadable) {
      String why = name + " must be a number, or a size such as 64M, and is " + conf.getTrimmed(name, "");
      throw new IllegalArgumentException(why, unreadable);
    }
  }

  /** Returns the parts of a list that commas separate; empty if it isn't set. */
  List<String> texts(String key) {
    return text(key).map(list -> Arrays.stream(list.split(",")).map(String::trim).filter(part -> !part.isEmpty()).toList())
        .orElse(List.of());
  }

  /** Returns a length of time, by default in seconds. */
  Duration duration(String key, Duration otherwise) {
    return text(key)
        .map(text -> Duration.ofSeconds(conf.getTimeDurationHelper(all + key, text, TimeUnit.SECONDS)))
        .orElse(otherwise);
  }

  /**
   * Returns every key that the configuration sets for this bucket, without its beginning, and with its value. Keys of
   * other buckets, blank values and Hadoop's own defaults are left out.
   */
  Map<String, Value> all() {
    Map<String, Value> said = new TreeMap<>();
    for (Map.Entry<String, String> one : conf) {
      String name = one.getKey();
      if (ours.isPresent() && name.startsWith(ours.get())) {
        note(said, name.substring(ours.get().length()));
      } else if (name.startsWith(all) && ours.isEmpty()) {
        ofAccount(name.substring(all.length())).ifPresent(key -> note(said, key));
      } else if (name.startsWith(all) && !name.startsWith(all + "bucket.")) {
        note(said, name.substring(all.length()));
      } else if (name.startsWith(SHARED) && isShared(name.substring(SHARED.length()))) {
        note(said, name.substring(SHARED.length()));
      }
    }
    return said;
  }

  /**
   * Returns a secret from Hadoop's credential providers, or else the value that {@link #text} returns. {@code
   * security.credential.provider.path} names providers for only this family of keys. They are searched first.
   *
   * @throws IOException If a provider can't be read.
   */
  Optional<String> secret(String key) throws IOException {
    Configuration asked = withOwnProviders();
    for (String name : names(key)) {
      char[] secret = asked.getPassword(name);
      if (secret != null && !new String(secret).isBlank()) {
        return Optional.of(new String(secret).trim());
      }
    }
    return Optional.empty();
  }

  private void note(Map<String, Value> said, String key) {
    value(key).ifPresent(value -> said.put(key, value));
  }

  private Optional<Value> value(String key) {
    return names(key).stream().map(name -> new Value(name, said(name))).filter(value -> !value.text().isEmpty()).findFirst();
  }

  /** Returns the full names of a key. The first one that is set counts. */
  private List<String> names(String key) {
    Stream<String> own = own(key).stream();
    Stream<String> shared = isShared(key) ? Stream.of(all + key, SHARED + key) : Stream.of(all + key);
    return Stream.concat(own, shared).toList();
  }

  /** Returns the full names of a key that only this bucket or account has. */
  private List<String> own(String key) {
    return ours.map(beginning -> List.of(beginning + key))
        .orElseGet(() -> endings.stream().map(ending -> all + key + ending).toList());
  }

  /** Returns the full name of a key that is set for this bucket or account, or else its name for all. */
  private String set(String key) {
    return own(key).stream().filter(own -> conf.get(own) != null).findFirst().orElse(all + key);
  }

  /** Returns whether the full name of a key ends in the account's host, without this container in front of it. */
  boolean namesOnlyAccount(String name) {
    // A key of this container has both endings: that of the container and that of the account.
    return endings.stream().filter(name::endsWith).count() == 1;
  }

  /** Returns a key of Azure without the ending for this account; empty if it is a key of another account. */
  private Optional<String> ofAccount(String key) {
    Optional<String> own = endings.stream().filter(key::endsWith).findFirst();
    return own.map(ending -> key.substring(0, key.length() - ending.length()))
        .or(() -> Optional.of(key).filter(other -> !OTHER_ACCOUNT.matcher(other).find()));
  }

  private boolean isShared(String key) {
    return isShared && SHARED_KEYS.stream().anyMatch(key::startsWith);
  }

  private Configuration withOwnProviders() {
    Optional<String> own = text("security.credential.provider.path");
    if (own.isEmpty()) {
      return conf;
    }
    Configuration asked = new Configuration(conf);
    String path = CredentialProviderFactory.CREDENTIAL_PROVIDER_PATH;
    String others = conf.getTrimmed(path, "");
    asked.set(path, others.isEmpty() ? own.get() : own.get() + "," + others);
    return asked;
  }

  private String said(String key) {
    String[] sources = conf.getPropertySources(key);
    boolean isDefault = sources != null && sources.length > 0 && sources[0].equals(DEFAULTS);
    return isDefault ? "" : conf.getTrimmed(key, "");
  }
}
