package dev.laneway.hadoop;

import java.util.Optional;

/** The credentials for a store. None of them shows a secret when printed. */
sealed interface Login {
  /** Credentials that the library finds: the environment, profiles, workload identities, metadata servers. */
  record Found() implements Login {}

  /** No credentials. */
  record Anonymous() implements Login {}

  /** An access key of S3, with a token if it is temporary. */
  record Keys(String id, String secret, Optional<String> token) implements Login {
    @Override
    public String toString() {
      return "Keys[id=" + id + ", secret=***]";
    }
  }

  /** A service account's key, in the JSON that Google hands out. */
  record ServiceAccount(String json) implements Login {
    @Override
    public String toString() {
      return "ServiceAccount[json=***]";
    }
  }
}
