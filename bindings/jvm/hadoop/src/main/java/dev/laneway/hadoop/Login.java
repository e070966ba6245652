package dev.laneway.hadoop;

import java.util.Optional;

/** By which credentials a store is asked. None of them shows a secret when it is printed. */
sealed interface Login {
  /** As the library finds them: the environment, profiles, workload identities, metadata servers. */
  record Found() implements Login {}

  /** Without any. */
  record Anonymous() implements Login {}

  /** By an access key of S3's, whose token is there for temporary ones. */
  record Keys(String id, String secret, Optional<String> token) implements Login {
    @Override
    public String toString() {
      return "Keys[id=" + id + ", secret=***]";
    }
  }

  /** By a service account's key, as the JSON that Google hands out. */
  record ServiceAccount(String json) implements Login {
    @Override
    public String toString() {
      return "ServiceAccount[json=***]";
    }
  }
}
