package dev.laneway;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The way to buckets: settings, of which there may be several at a time in a process. The engine that does the work is one, whatever their number.
 * Closed, it gives no more buckets; what came of it goes on.
 */
public final class Laneway implements AutoCloseable {
  private final Handle handle;

  private Laneway(Handle handle) {
    this.handle = handle;
  }

  /**
   * Set up as the environment's variables say: those of AWS's and Google's own tools, and of the program {@code laneway}.
   *
   * @throws LanewayException where a variable or a file that one names can't be read
   */
  public static Laneway fromEnvironment() throws LanewayException {
    return new Builder().fromEnvironment().build();
  }

  /** Begins with the public services, and no variable but those of credentials, AWS's region and AWS's endpoint. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * The bucket of a URL such as {@code gs://lake} or {@code s3://lake/warehouse/}, with the prefix that comes along. Nothing is asked of the store.
   *
   * @throws LanewayException where the text is no URL of a store, or names no bucket
   */
  public Bucket bucket(String url) throws LanewayException {
    return Bucket.of(handle, url);
  }

  /**
   * Copies sources to a destination: files, folders, objects, prefixes and patterns, by path or URL. A tree enters a
   * destination that ends in {@code /}, or is {@code .} or {@code ..}, under its own name. It becomes any other
   * destination, whether that exists or not.
   *
   * @throws LanewayException for what can't be meant; what fails of the job stands in its summary
   */
  public Job copy(List<String> sources, String destination, JobOptions options) throws LanewayException {
    return Job.begin(this, handle, "copy", sources, destination, options);
  }

  /**
   * Makes what lies below a destination equal to what lies below a source.
   *
   * @throws LanewayException for what can't be meant; what fails of the job stands in its summary
   */
  public Job sync(String source, String destination, JobOptions options) throws LanewayException {
    return Job.begin(this, handle, "sync", List.of(source), destination, options);
  }

  /**
   * Removes objects, or what matches patterns.
   *
   * @throws LanewayException for what can't be meant; what fails of the job stands in its summary
   */
  public Job remove(List<String> targets, JobOptions options) throws LanewayException {
    return Job.begin(this, handle, "remove", targets, null, options);
  }

  /** What the engine has done so far, for all that this and others in the process have asked for. */
  public Counters counters() {
    try {
      return Counters.read(Engine.now(Native.counters(handle.number())));
    } catch (LanewayException closed) {
      throw new IllegalStateException("it is closed", closed);
    }
  }

  /** Gives no more buckets and begins no more jobs. Buckets, readers and jobs that came of it go on. */
  @Override
  public void close() {
    handle.close();
  }

  /** Holds no secret. */
  @Override
  public String toString() {
    return "Laneway[]";
  }

  /** Sets a {@link Laneway} up. None of its settings has to be set for speed. */
  public static final class Builder {
    private final List<Map.Entry<String, String>> settings = new ArrayList<>();
    private CredentialProvider provider;

    private Builder() {}

    /** Begins with what the process's variables say; the other settings go before them. */
    public Builder fromEnvironment() {
      return with("environment", "true");
    }

    /** Begins with what these variables say and no others: for programs that act for several users. */
    public Builder fromVariables(Map<String, String> variables) {
      with("variables", "");
      variables.forEach((name, value) -> with("variables:" + name, value));
      return this;
    }

    /** Sends no credentials and looks for none. */
    public Builder anonymous(boolean anonymous) {
      return with("anonymous", Boolean.toString(anonymous));
    }

    /** Base URL of S3's API, instead of what variables and the profile say, and else AWS's. */
    public Builder s3Endpoint(String url) {
      return with("s3_endpoint", url);
    }

    /** Base URL of GCS's API, instead of {@code https://storage.googleapis.com}. */
    public Builder gcsEndpoint(String url) {
      return with("gcs_endpoint", url);
    }

    /** AWS region, instead of the variables' or the profile's. */
    public Builder region(String region) {
      return with("region", region);
    }

    /** AWS keys, instead of looking for some. */
    public Builder accessKey(String id, String secret) {
      return with("access_key_id", id).with("secret_access_key", secret);
    }

    /** The token of temporary AWS keys. */
    public Builder sessionToken(String token) {
      return with("session_token", token);
    }

    /** AWS profile whose credentials are used, and no others. */
    public Builder profile(String name) {
      return with("profile", name);
    }

    /** The key of a service account of Google's, as the file that its console hands out holds it (JSON). */
    public Builder serviceAccountKey(String json) {
      return with("service_account_key", json);
    }

    /** The same in a file, which is read at {@link #build}. */
    public Builder serviceAccountFile(String path) {
      return with("service_account_file", path);
    }

    /** Asked for credentials, instead of looking for some in files and variables. */
    public Builder credentialProvider(CredentialProvider provider) {
      this.provider = Objects.requireNonNull(provider, "provider");
      return this;
    }

    /** Trusts the certificates in a PEM file too, beside the platform's. It is read at {@link #build}. */
    public Builder caFile(String path) {
      return with("ca_file", path);
    }

    /** Puts S3 bucket names into the path instead of the host name. By default the endpoint decides. */
    public Builder s3PathStyle(boolean inPath) {
      return with("s3_path_style", Boolean.toString(inPath));
    }

    /** Uses Amazon's endpoints with cryptography that is validated by FIPS 140. */
    public Builder s3Fips(boolean fips) {
      return with("s3_fips", Boolean.toString(fips));
    }

    /** Uses Amazon's dual-stack endpoints, which also have IPv6. */
    public Builder s3Dualstack(boolean dualstack) {
      return with("s3_dualstack", Boolean.toString(dualstack));
    }

    /** Uses Amazon's endpoints of Transfer Acceleration. */
    public Builder s3Accelerate(boolean accelerate) {
      return with("s3_accelerate", Boolean.toString(accelerate));
    }

    /** Project that GCS bills, instead of the bucket's owner's. */
    public Builder userProject(String project) {
      return with("user_project", project);
    }

    /** Accepts the costs of requester-pays buckets on S3. */
    public Builder requestPayer(boolean pays) {
      return with("request_payer", Boolean.toString(pays));
    }

    /** Proxy for {@code https} URLs. */
    public Builder httpsProxy(String url) {
      return with("https_proxy", url);
    }

    /** Proxy for {@code http} URLs. */
    public Builder httpProxy(String url) {
      return with("http_proxy", url);
    }

    /** Hosts that no proxy is asked for. */
    public Builder noProxy(List<String> hosts) {
      hosts.forEach(host -> with("no_proxy", host));
      return this;
    }

    /** Encrypts new S3 objects by {@code AES256}, {@code aws:kms} or {@code aws:kms:dsse}. */
    public Builder sse(String algorithm) {
      return with("sse", algorithm);
    }

    /** Customer-managed key of a key management service that new objects are encrypted with. */
    public Builder kmsKey(String key) {
      return with("kms_key", key);
    }

    /** Uses S3 bucket keys, which save requests to KMS. */
    public Builder kmsBucketKey(boolean enabled) {
      return with("kms_bucket_key", Boolean.toString(enabled));
    }

    /** A key that the store doesn't keep, as 32 bytes in base64: new objects are encrypted with it, and others read. */
    public Builder customerKey(String key) {
      return with("customer_key", key);
    }

    /** Adds a header to each request to the store. */
    public Builder header(String name, String value) {
      return with("headers:" + name, value);
    }

    /** Adds a product to the {@code User-Agent} of requests, such as {@code shop/2.1}. */
    public Builder userAgentSuffix(String product) {
      return with("user_agent_suffix", product);
    }

    /** How long a request may go without a byte in either direction until it is tried again. */
    public Builder stallTimeout(Duration timeout) {
      return with("stall_timeout", Long.toString(timeout.toMillis()));
    }

    /** How long nothing may come from a server that is asked again and again until calls end; zero tries nothing again. */
    public Builder retryFor(Duration time) {
      return with("retry_for", Long.toString(time.toMillis()));
    }

    /** Most bytes that the engine holds; counts where no other client of the process has started it before. */
    public Builder memory(long bytes) {
      return with("memory", Long.toString(bytes));
    }

    /** Most connections of the engine; counts where no other client of the process has started it before. */
    public Builder connectionsMax(int connections) {
      return with("connections_max", Integer.toString(connections));
    }

    /** Bytes a second that the engine moves at most; counts where no other client of the process has started it before. */
    public Builder bandwidthLimit(long bytesPerSecond) {
      return with("bandwidth_limit", Long.toString(bytesPerSecond));
    }

    /**
     * The client. Nothing is dialled.
     *
     * @throws LanewayException for settings that make no sense, and files that can't be read
     */
    public Laneway build() throws LanewayException {
      Packed packed = new Packed().pairs(settings);
      return new Laneway(Engine.client(packed, provider));
    }

    /** Holds no value, as some are secrets. */
    @Override
    public String toString() {
      return "Laneway.Builder" + settings.stream().map(Map.Entry::getKey).distinct().toList();
    }

    private Builder with(String name, String value) {
      settings.add(Map.entry(name, Objects.requireNonNull(value, name)));
      return this;
    }
  }
}
