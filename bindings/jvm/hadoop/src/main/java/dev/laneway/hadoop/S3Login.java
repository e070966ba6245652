package dev.laneway.hadoop;

import dev.laneway.AssumedRole;
import java.io.IOException;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds the credentials that a configuration of S3A selects. {@code fs.s3a.aws.credentials.provider} names classes of
 * other connectors, which can't be called. Known classes are translated, in their order.
 */
final class S3Login {
  private static final String PROVIDERS = "aws.credentials.provider";
  private static final String PROVIDERS_OF_ROLE = "assumed.role.credentials.provider";

  /** S3A's own default (fs.s3a.assumed.role.session.duration). */
  private static final Duration SESSION = Duration.ofMinutes(30);

  /**
   * The packages of S3A and of both versions of AWS's SDK. A provider's name has the same meaning in all these
   * packages.
   */
  private static final Pattern PACKAGES = Pattern.compile(
      "(?:org\\.apache\\.hadoop\\.fs\\.s3a|com\\.amazonaws\\.auth|software\\.amazon\\.awssdk\\.auth\\.credentials)\\.(?:\\w+\\.)*(\\w+)");

  /** The names of the providers that this class can translate. */
  private static final Set<String> KNOWN = Set.of(
      "SimpleAWSCredentialsProvider",
      "TemporaryAWSCredentialsProvider",
      "AnonymousAWSCredentialsProvider",
      "AnonymousCredentialsProvider",
      "EnvironmentVariableCredentialsProvider",
      "AssumedRoleCredentialProvider",
      "DefaultAWSCredentialsProviderChain",
      "DefaultCredentialsProvider",
      "ProfileAWSCredentialsProvider",
      "ProfileCredentialsProvider",
      "IAMInstanceCredentialsProvider",
      "EC2ContainerCredentialsProviderWrapper",
      "ContainerCredentialsProvider",
      "InstanceProfileCredentialsProvider",
      "WebIdentityTokenCredentialsProvider",
      "WebIdentityTokenFileCredentialsProvider");

  /** The sources that the library searches, in its order. */
  private enum Place {
    ENVIRONMENT(
        "AWS_ACCESS_KEY_ID", "", "AWS_SECRET_ACCESS_KEY", "", "AWS_SESSION_TOKEN", "", "AWS_SECURITY_TOKEN", "",
        "AWS_CREDENTIAL_EXPIRATION", ""),
    WEB_IDENTITY("AWS_WEB_IDENTITY_TOKEN_FILE", "", "AWS_ROLE_ARN", ""),
    PROFILE("AWS_CONFIG_FILE", "/dev/null", "AWS_SHARED_CREDENTIALS_FILE", "/dev/null", "AWS_PROFILE", "",
        "AWS_DEFAULT_PROFILE", ""),
    CONTAINER("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "", "AWS_CONTAINER_CREDENTIALS_FULL_URI", ""),
    INSTANCE("AWS_EC2_METADATA_DISABLED", "true");

    /** Environment variables, each followed by the value that keeps the library from searching this source. */
    private final List<String> hiding;

    Place(String... hiding) {
      this.hiding = List.of(hiding);
    }

    void hide(Map<String, String> variables) {
      for (int i = 0; i < hiding.size(); i += 2) {
        variables.put(hiding.get(i), hiding.get(i + 1));
      }
    }
  }

  private final Values values;
  private final Map<String, String> environment;

  private S3Login(Values values, Map<String, String> environment) {
    this.values = values;
    this.environment = environment;
  }

  /**
   * Returns the configured credentials. Without a list of providers, keys of the configuration come before credentials
   * that the library finds.
   *
   * @param environment the process's variables
   * @throws IOException for a provider that can't be translated
   */
  static Login of(Values values, Map<String, String> environment) throws IOException {
    S3Login login = new S3Login(values, environment);
    List<String> providers = values.texts(PROVIDERS);
    if (providers.isEmpty()) {
      Optional<Login> keys = login.keys();
      return keys.isPresent() ? keys.get() : Login.Found.ANYWHERE;
    }
    return login.first(PROVIDERS, providers);
  }

  /** Returns the credentials of the first provider that has some. */
  private Login first(String key, List<String> providers) throws IOException {
    // Sources that may have credentials. Only requests could show whether they have some.
    Set<Place> places = EnumSet.noneOf(Place.class);
    for (String provider : providers) {
      Optional<Login> certain = certain(key, provider);
      if (certain.isPresent()) {
        if (!places.isEmpty()) {
          throw disordered(key, provider);
        }
        return certain.get();
      }
      for (Place place : places(provider)) {
        if (places.stream().anyMatch(earlier -> earlier.compareTo(place) > 0)) {
          throw disordered(key, provider);
        }
        places.add(place);
      }
    }
    if (places.isEmpty()) {
      throw new IOException("fs.s3a." + key + ": none of its providers has credentials: " + String.join(", ", providers));
    }
    return found(places);
  }

  /**
   * Returns the credentials of a provider that has some for certain; empty if it has none, or may have some.
   *
   * @throws IOException for an unknown provider
   */
  private Optional<Login> certain(String key, String provider) throws IOException {
    switch (name(key, provider)) {
      case "SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider" -> {
        return keys();
      }
      case "AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider" -> {
        return Optional.of(new Login.Anonymous());
      }
      case "EnvironmentVariableCredentialsProvider" -> {
        boolean isSet = has("AWS_ACCESS_KEY_ID") && has("AWS_SECRET_ACCESS_KEY");
        return isSet ? Optional.of(found(EnumSet.of(Place.ENVIRONMENT))) : Optional.empty();
      }
      case "AssumedRoleCredentialProvider" -> {
        if (key.equals(PROVIDERS_OF_ROLE)) {
          throw new IOException("fs.s3a." + key + ": a role can't be assumed by " + provider);
        }
        return Optional.of(role());
      }
      default -> {
        return Optional.empty();
      }
    }
  }

  /** Returns the sources that a provider searches, if only requests can show whether they have credentials. */
  private Set<Place> places(String provider) {
    return switch (provider.substring(provider.lastIndexOf('.') + 1)) {
      case "DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider" -> EnumSet.allOf(Place.class);
      case "ProfileAWSCredentialsProvider", "ProfileCredentialsProvider" -> EnumSet.of(Place.PROFILE);
      case "IAMInstanceCredentialsProvider", "EC2ContainerCredentialsProviderWrapper" ->
          EnumSet.of(Place.CONTAINER, Place.INSTANCE);
      case "ContainerCredentialsProvider" -> EnumSet.of(Place.CONTAINER);
      case "InstanceProfileCredentialsProvider" -> EnumSet.of(Place.INSTANCE);
      case "WebIdentityTokenCredentialsProvider", "WebIdentityTokenFileCredentialsProvider" ->
          has("AWS_WEB_IDENTITY_TOKEN_FILE") ? EnumSet.of(Place.WEB_IDENTITY) : EnumSet.noneOf(Place.class);
      default -> EnumSet.noneOf(Place.class);
    };
  }

  private static String name(String key, String provider) throws IOException {
    Matcher named = PACKAGES.matcher(provider);
    if (!named.matches() || !KNOWN.contains(named.group(1))) {
      throw new IOException("fs.s3a." + key + ": " + provider + " can't be asked for credentials: they come from keys in"
          + " the configuration, from an assumed role, or from where AWS' own tools find them");
    }
    return named.group(1);
  }

  private static IOException disordered(String key, String provider) {
    return new IOException("fs.s3a." + key + ": " + provider + " must come earlier: the order is keys, the environment,"
        + " web identities, profiles, containers, instances");
  }

  /** Returns a login with which the library searches only these sources. */
  private Login found(Set<Place> places) {
    Map<String, String> variables = new TreeMap<>();
    EnumSet.complementOf(EnumSet.copyOf(places)).forEach(place -> place.hide(variables));
    if (places.contains(Place.PROFILE)) {
      values.text("auth.profile.name").ifPresent(name -> variables.put("AWS_PROFILE", name));
      values.text("auth.profile.file").ifPresent(file -> variables.put("AWS_SHARED_CREDENTIALS_FILE", file));
    }
    return new Login.Found(variables);
  }

  private boolean has(String variable) {
    return !environment.getOrDefault(variable, "").isEmpty();
  }

  /** Returns the keys in the configuration. */
  private Optional<Login> keys() throws IOException {
    Optional<String> id = values.secret("access.key");
    Optional<String> secret = values.secret("secret.key");
    if (id.isPresent() != secret.isPresent()) {
      throw new IOException("fs.s3a.access.key and fs.s3a.secret.key must be set together");
    }
    return id.isPresent()
        ? Optional.of(new Login.Keys(id.get(), secret.get(), values.secret("session.token")))
        : Optional.empty();
  }

  private Login role() throws IOException {
    AssumedRole role = AssumedRole.of(values.text("assumed.role.arn").orElseThrow(
        () -> new IOException("fs.s3a.assumed.role.arn must name the role that AssumedRoleCredentialProvider assumes")));
    role = role.duration(values.duration("assumed.role.session.duration", SESSION));
    role = with(role, "assumed.role.session.name", AssumedRole::sessionName);
    role = with(role, "assumed.role.external.id", AssumedRole::externalId);
    role = with(role, "assumed.role.policy", AssumedRole::policy);
    role = with(role, "assumed.role.sts.endpoint.region", AssumedRole::stsRegion);
    role = with(role, "assumed.role.sts.endpoint", (some, at) -> some.stsEndpoint(at.contains("://") ? at : "https://" + at));
    List<String> providers = values.texts(PROVIDERS_OF_ROLE);
    if (providers.isEmpty()) {
      // As S3A's own default.
      providers = List.of(
          "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
          "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider");
    }
    return new Login.Role(role, first(PROVIDERS_OF_ROLE, providers));
  }

  private interface Part {
    AssumedRole set(AssumedRole role, String value);
  }

  private AssumedRole with(AssumedRole role, String key, Part part) {
    return values.text(key).map(value -> part.set(role, value)).orElse(role);
  }
}
