package dev.laneway;

import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** An AWS role to assume with AWS keys. Each method returns a changed copy of the role. */
public final class AssumedRole {
  private final Map<String, String> parts;

  private AssumedRole(Map<String, String> parts) {
    this.parts = parts;
  }

  /** Returns the role with this ARN. */
  public static AssumedRole of(String arn) {
    return new AssumedRole(Map.of()).with("arn", arn);
  }

  /** Sets the session's name, which AWS's logs show. */
  public AssumedRole sessionName(String name) {
    return with("session_name", name);
  }

  /** Sets the ID that the role's owner gave to a third party. */
  public AssumedRole externalId(String id) {
    return with("external_id", id);
  }

  /** Sets how long the session's keys last. AWS's default is an hour. */
  public AssumedRole duration(Duration duration) {
    return with("duration_s", Long.toString(duration.toSeconds()));
  }

  /** Sets a policy in JSON that limits the session further than the role. */
  public AssumedRole policy(String json) {
    return with("policy", json);
  }

  /**
   * Sets the URL of STS. If S3's endpoint isn't Amazon's, this URL must be set, because AWS must not see the keys of
   * another service.
   */
  public AssumedRole stsEndpoint(String url) {
    return with("sts_endpoint", url);
  }

  /** Sets the region that signs the request to STS, if it isn't S3's region. */
  public AssumedRole stsRegion(String region) {
    return with("sts_region", region);
  }

  /** Returns the role's parts, under the names in the setting {@code assume_role}. */
  Map<String, String> parts() {
    return parts;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AssumedRole role && parts.equals(role.parts);
  }

  @Override
  public int hashCode() {
    return parts.hashCode();
  }

  @Override
  public String toString() {
    return "AssumedRole" + parts;
  }

  private AssumedRole with(String name, String value) {
    Map<String, String> more = new TreeMap<>(parts);
    more.put(name, Objects.requireNonNull(value, () -> "AssumedRole." + OptionNames.camel(name, '_')));
    return new AssumedRole(more);
  }
}
