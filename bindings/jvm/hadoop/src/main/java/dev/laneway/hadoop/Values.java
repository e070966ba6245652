package dev.laneway.hadoop;

import java.io.IOException;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.alias.CredentialProviderFactory;

/**
 * The values of a filesystem's keys in Hadoop's configuration. {@code fs.s3a.bucket.NAME.KEY}, for one bucket,
 * overrides {@code fs.s3a.KEY}, and likewise for {@code fs.gs}.
 */
final class Values {
  /** The name of Hadoop's own file of defaults, as a configuration reports the source of a value. */
  private static final String DEFAULTS = "core-default.xml";

  private final Configuration conf;
  private final String ours;
  private final String all;

  /**
   * @param family the beginning of the keys: {@code fs.s3a} or {@code fs.gs}
   * @param bucket the bucket's name
   */
  Values(Configuration conf, String family, String bucket) {
    this.ours = family + ".bucket." + bucket + ".";
    this.all = family + ".";
    this.conf = conf;
  }

  /**
   * Returns the value of a key, without surrounding spaces; empty if it isn't set, or is blank. Values from Hadoop's
   * own file of defaults are ignored, because the user didn't choose them. For example, these say that S3A doesn't put
   * bucket names into paths.
   */
  Optional<String> text(String key) {
    return first(said(ours + key), said(all + key));
  }

  /** Does the same for a flag. */
  Optional<Boolean> flag(String key) {
    return text(key).map(Boolean::parseBoolean);
  }

  boolean isOn(String key) {
    return flag(key).orElse(false);
  }

  /** Returns a number of bytes, which may end in a letter: {@code 64M}. */
  long bytes(String key, long otherwise) {
    return conf.getLongBytes(ours + key, conf.getLongBytes(all + key, otherwise));
  }

  int number(String key, int otherwise) {
    return conf.getInt(ours + key, conf.getInt(all + key, otherwise));
  }

  /**
   * Returns a secret from Hadoop's credential providers, or else the value that {@link #text} returns. {@code
   * security.credential.provider.path} names providers for only this family of keys. They are searched first.
   *
   * @throws IOException If a provider can't be read.
   */
  Optional<String> secret(String key) throws IOException {
    Configuration asked = withOwnProviders();
    char[] one = asked.getPassword(ours + key);
    char[] other = asked.getPassword(all + key);
    return first(one == null ? null : new String(one).trim(), other == null ? null : new String(other).trim());
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
    return isDefault ? null : conf.getTrimmed(key);
  }

  private static Optional<String> first(String one, String other) {
    return Optional.ofNullable(one).filter(text -> !text.isEmpty()).or(
        () -> Optional.ofNullable(other).filter(text -> !text.isEmpty()));
  }
}
