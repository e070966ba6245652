package dev.laneway;

import java.time.Instant;

/**
 * Supplies credentials. The engine calls the provider when it first needs credentials, and again before they expire. It
 * does so on a thread that may block. If the provider throws an exception, the calls that need the credentials fail.
 */
public interface CredentialProvider {
  /** Returns AWS credentials, or {@code null} if this provider has none. */
  default AccessKey accessKey() throws Exception {
    return null;
  }

  /** Returns an OAuth token for GCS, or {@code null} if this provider has none. */
  default BearerToken bearerToken() throws Exception {
    return null;
  }

  /**
   * AWS credentials.
   *
   * @param id the access key ID
   * @param secret the secret access key
   * @param sessionToken the session token of temporary credentials; {@code null} for permanent ones
   * @param expiresAt when they expire, or {@code null} if they don't
   */
  record AccessKey(String id, String secret, String sessionToken, Instant expiresAt) {
    /** Makes credentials that don't expire. */
    public AccessKey(String id, String secret) {
      this(id, secret, null, null);
    }

    @Override
    public String toString() {
      return "AccessKey[id=" + id + ", secret=***, expiresAt=" + expiresAt + "]";
    }
  }

  /**
   * An OAuth access token for GCS.
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
