package dev.laneway.hadoop;

import dev.laneway.AssumedRole;
import java.util.Map;
import java.util.Optional;

/** The credentials for a store. None of them shows a secret when printed. */
sealed interface Login {
  /**
   * Credentials that the library finds: the environment, profiles, workload identities, metadata servers.
   *
   * @param variables environment variables to change, so that only some of these places count; an empty one is unset
   */
  record Found(Map<String, String> variables) implements Login {
    /** Every place counts. */
    static final Found ANYWHERE = new Found(Map.of());
  }

  /** No credentials. */
  record Anonymous() implements Login {}

  /** An access key of S3, with a token if it is temporary. */
  record Keys(String id, String secret, Optional<String> token) implements Login {
    @Override
    public String toString() {
      return "Keys[id=" + id + ", secret=***]";
    }
  }

  /** A role of AWS, assumed by other credentials. */
  record Role(AssumedRole role, Login base) implements Login {}

  /** A service account's key, in the JSON that Google hands out. */
  record ServiceAccount(String json) implements Login {
    @Override
    public String toString() {
      return "ServiceAccount[json=***]";
    }
  }

  /** A service account of Google, impersonated by other credentials. */
  record Impersonated(String account, Login base) implements Login {}
}
