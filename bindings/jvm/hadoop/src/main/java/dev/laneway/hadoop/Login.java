package dev.laneway.hadoop;

import dev.laneway.AssumedRole;
import java.util.Map;
import java.util.Optional;

/** The credentials for a store. None of them shows a secret when printed. */
sealed interface Login {
  /**
   * Credentials that the library finds in its sources: the environment, profiles, workload identities, metadata
   * servers.
   *
   * @param variables Environment variables to change, so that the library searches only some of these sources. An empty
   * value unsets a variable.
   */
  record Found(Map<String, String> variables) implements Login {
    /** The library searches all sources. */
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

  /** A service account's key, as JSON in Google's own format. */
  record ServiceAccount(String json) implements Login {
    @Override
    public String toString() {
      return "ServiceAccount[json=***]";
    }
  }

  /** Azure's credentials, under the names in the setting {@code azure_credentials}. */
  record Azure(Map<String, String> parts) implements Login {
    @Override
    public String toString() {
      return "Azure[" + parts.keySet() + "]";
    }
  }

  /** A service account of Google, impersonated by other credentials. */
  record Impersonated(String account, Login base) implements Login {}
}
