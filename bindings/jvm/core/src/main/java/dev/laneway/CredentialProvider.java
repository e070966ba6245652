package dev.laneway;

import java.time.Instant;

/**
 * Supplies credentials. The engine asks for them when it needs some, and again before they expire, on a thread that may
 * block. An exception fails the calls that need them.
 */
public interface CredentialProvider {
  /** Returns AWS keys, or {@code null} if it has none. */
  default AccessKey accessKey() throws Exception {
    return null;
  }

  /** Returns a token for GCS, or {@code null} if it has none. */
  default BearerToken bearerToken() throws Exception {
    return null;
  }

  /**
   * AWS keys.
   *
   * @param id the key's id
   * @param secret its secret
   * @param sessionToken the token of temporary keys, or {@code null}
   * @param expiresAt when they expire, or {@code null} if they don't
   */
  record AccessKey(String id, String secret, String sessionToken, Instant expiresAt) {
    /** Makes keys that don't expire. */
    public AccessKey(String id, String secret) {
      this(id, secret, null, null);
    }

    @Override
    public String toString() {
      return "AccessKey[id=" + id + ", secret=***, expiresAt=" + expiresAt + "]";
    }
  }

  /**
   * A token for GCS.
   *
   * @param token the token
   * @param expiresAt when it expires, or {@code null} if it doesn't
   */
  record BearerToken(String token, Instant expiresAt) {
    @Override
    public String toString() {
      return "BearerToken[token=***, expiresAt=" + expiresAt + "]";
    }
  }
}
