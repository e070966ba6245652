package dev.laneway;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A client, which gives access to buckets with its settings. A process may have several clients. One engine does the
 * work of all clients. A closed client returns no more buckets, but existing ones still work.
 */
public final class Laneway implements AutoCloseable {
  private final Handle handle;

  private Laneway(Handle handle) {
    this.handle = handle;
  }

  /**
   * Returns a client that is configured by the environment variables of AWS's and Google's own tools, and of the
   * program {@code laneway}.
   *
   * @throws LanewayException If a variable is invalid, or if a file that it names can't be read.
   */
  public static Laneway fromEnvironment() throws LanewayException {
    return new Builder().fromEnvironment().build();
  }

  /**
   * Returns a builder for the public services. It reads only the environment variables for credentials and for AWS's
   * region and endpoint.
   */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * Returns the bucket of a URL such as {@code gs://lake} or {@code s3://lake/warehouse/}, with the URL's prefix. Sends
   * no request.
   *
   * @throws LanewayException if the text isn't a URL of a store, or names no bucket
   */
  public Bucket bucket(String url) throws LanewayException {
    return Bucket.of(handle, url);
  }

  /**
   * Copies sources to a destination: files, folders, objects, prefixes and patterns, by path or URL. If the destination
   * ends in {@code /}, or is {@code .} or {@code ..}, a tree is copied into it under the tree's own name. Any other
   * destination becomes the copy of the tree itself, whether it exists or not.
   *
   * @throws LanewayException for an invalid request; failures of the job are in its summary
   */
  public Job copy(List<String> sources, String destination, JobOptions options) throws LanewayException {
    Objects.requireNonNull(destination, "destination");
    return Job.begin(this, handle, "copy", Objects.requireNonNull(sources, "sources"), destination, options);
  }

  /**
   * Makes everything below a destination equal to everything below a source.
   *
   * @throws LanewayException for an invalid request; failures of the job are in its summary
   */
  public Job sync(String source, String destination, JobOptions options) throws LanewayException {
    Objects.requireNonNull(destination, "destination");
    return Job.begin(this, handle, "sync", List.of(Objects.requireNonNull(source, "source")), destination, options);
  }

  /**
   * Removes objects, or those that match patterns.
   *
   * @throws LanewayException for an invalid request; failures of the job are in its summary
   */
  public Job remove(List<String> targets, JobOptions options) throws LanewayException {
    return Job.begin(this, handle, "remove", Objects.requireNonNull(targets, "targets"), null, options);
  }

  /**
   * Plans a copy of everything below a prefix, in a folder: a path, or the URL of a prefix. The copies go where {@link
   * #copy} with {@link JobOptions#recursive} puts them. If a call is interrupted, the same call continues after the last
   * part that it wrote. A folder has only one plan.
   */
  public Plan.Totals planCopy(String source, String destination, String folder, PlanOptions options)
      throws IOException {
    return Plan.make(handle, "copy", between(source, destination, folder, options));
  }

  /**
   * Plans a sync between two prefixes. The plan copies an object if the destination lacks it, if the sizes or checksums
   * in the listings differ, or if the listings show neither. With {@link PlanOptions#delete}, the parts that remove
   * objects run only once every copy has succeeded.
   */
  public Plan.Totals planSync(String source, String destination, String folder, PlanOptions options)
      throws IOException {
    return Plan.make(handle, "sync", between(source, destination, folder, options));
  }

  /**
   * Plans the removal of everything below a prefix. An object is only removed if it still has the version that was
   * planned.
   */
  public Plan.Totals planRemove(String target, String folder, PlanOptions options) throws IOException {
    PlanOptions named = options.argument("source", Objects.requireNonNull(target, "target"));
    return Plan.make(handle, "remove", named.argument("folder", folder));
  }

  /** Plans a comparison of two prefixes. A row fails if its object is missing at the destination, or differs there. */
  public Plan.Totals planVerify(String source, String destination, String folder, PlanOptions options)
      throws IOException {
    return Plan.make(handle, "verify", between(source, destination, folder, options));
  }

  private static PlanOptions between(String source, String destination, String folder, PlanOptions options) {
    PlanOptions named = options.argument("source", source).argument("destination", destination);
    return named.argument("folder", folder);
  }

  /** Opens the plan in a folder. Its source and destination must be reachable with this client's settings. */
  public Plan openPlan(String folder) throws IOException {
    return Plan.open(handle, folder);
  }

  /** Returns the engine's counts so far, for the whole process. */
  public Counters counters() {
    try {
      return Counters.read(Engine.now(Native.counters(handle.number())));
    } catch (LanewayException closed) {
      throw new IllegalStateException("the client is closed", closed);
    }
  }

  /** Closes the client: it returns no more buckets and begins no more jobs. Its buckets, readers and jobs continue. */
  @Override
  public void close() {
    handle.close();
  }

  /** Contains no secret. */
  @Override
  public String toString() {
    return "Laneway[]";
  }

  /** Configures a {@link Laneway}. The defaults are as fast as any settings. */
  public static final class Builder {
    private final List<Map.Entry<String, String>> settings = new ArrayList<>();
    private CredentialProvider provider;

    private Builder() {}

    /** Starts with the process's environment variables. Other settings override them. */
    public Builder fromEnvironment() {
      return with("environment", "true");
    }

    /** Reads these variables instead of the environment, for programs that act for several users. */
    public Builder fromVariables(Map<String, String> variables) {
      with("variables", "");
      variables.forEach((name, value) -> with("variables:" + name, value));
      return this;
    }

    /** Sends no credentials, and doesn't search for any. */
    public Builder anonymous(boolean anonymous) {
      return with("anonymous", Boolean.toString(anonymous));
    }

    /**
     * Sets the base URL of the S3 API. Without it, variables and the profile decide, and AWS's endpoint is the default.
     */
    public Builder s3Endpoint(String url) {
      return with("s3_endpoint", url);
    }

    /** Sets the base URL of the GCS API, instead of {@code https://storage.googleapis.com}. */
    public Builder gcsEndpoint(String url) {
      return with("gcs_endpoint", url);
    }

    /** Sets the storage account of Azure URLs that name none, instead of the variables. */
    public Builder azureAccount(String name) {
      return with("azure_account", name);
    }

    /**
     * Uses these credentials for Azure, and none of the variables. The names are {@code account_key}, {@code sas_token},
     * {@code connection_string}, {@code token}, {@code client_secret}, {@code federated_token_file}, {@code
     * use_azure_cli} and {@code use_managed_identity}. One of them is enough. The names {@code client_id}, {@code
     * tenant_id} and {@code authority_host} describe the identity of a secret, a token file or a machine. A {@code
     * client_id} without a secret or a token file chooses the machine's identity with this id. If the machine has no
     * identity, requests fail.
     */
    public Builder azureCredentials(Map<String, String> credentials) {
      credentials.forEach((name, value) -> with("azure_credentials:" + name, value));
      return this;
    }

    /** Sets the URL of the Blob service of Azure's storage account, instead of the variables. */
    public Builder azureEndpoint(String url) {
      return with("azure_endpoint", url);
    }

    /** Sets the AWS region, instead of the one from the variables or the profile. */
    public Builder region(String region) {
      return with("region", region);
    }

    /** Uses these AWS credentials, and doesn't look for others. */
    public Builder accessKey(String id, String secret) {
      return with("access_key_id", id).with("secret_access_key", secret);
    }

    /** Sets the session token of temporary AWS keys. */
    public Builder sessionToken(String token) {
      return with("session_token", token);
    }

    /**
     * Assumes this AWS role, and signs S3 requests with the role's keys. The AWS keys that assume the role come from
     * {@link #accessKey} or a provider, or Laneway finds them.
     */
    public Builder assumeRole(AssumedRole role) {
      role.parts().forEach((name, value) -> with("assume_role:" + name, value));
      return this;
    }

    /**
     * Acts on GCS as the last of these service accounts, named by their email addresses. The client's own identity must
     * be permitted to act as the first account, and each account as the next one.
     */
    public Builder impersonate(List<String> accounts) {
      accounts.forEach(account -> with("impersonate", account));
      return this;
    }

    /** Uses the credentials of this AWS profile, and no others. */
    public Builder profile(String name) {
      return with("profile", name);
    }

    /**
     * Uses this key of a Google service account. {@code json} is the text of the key file that Google's console
     * creates.
     */
    public Builder serviceAccountKey(String json) {
      return with("service_account_key", json);
    }

    /** Uses the service account key in this file, which {@link #build} reads. */
    public Builder serviceAccountFile(String path) {
      return with("service_account_file", path);
    }

    /** Asks this provider for credentials, instead of looking in files and variables. */
    public Builder credentialProvider(CredentialProvider provider) {
      this.provider = Objects.requireNonNull(provider, "provider");
      return this;
    }

    /** Trusts the certificates of this PEM file, besides the platform's. {@link #build} reads the file. */
    public Builder caFile(String path) {
      return with("ca_file", path);
    }

    /** Puts S3 bucket names into the path instead of the host name. By default the endpoint decides. */
    public Builder s3PathStyle(boolean inPath) {
      return with("s3_path_style", Boolean.toString(inPath));
    }

    /** Uses Amazon's endpoints with cryptography that is validated under FIPS 140. */
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

    /** Sets the project that GCS bills, instead of the bucket owner's project. */
    public Builder userProject(String project) {
      return with("user_project", project);
    }

    /** Accepts the costs of requester-pays buckets on S3. */
    public Builder requestPayer(boolean pays) {
      return with("request_payer", Boolean.toString(pays));
    }

    /** Sets the proxy for {@code https} URLs. */
    public Builder httpsProxy(String url) {
      return with("https_proxy", url);
    }

    /** Sets the proxy for {@code http} URLs. */
    public Builder httpProxy(String url) {
      return with("http_proxy", url);
    }

    /** Connects to these hosts directly, without a proxy. */
    public Builder noProxy(List<String> hosts) {
      hosts.forEach(host -> with("no_proxy", host));
      return this;
    }

    /** Encrypts new S3 objects with {@code AES256}, {@code aws:kms} or {@code aws:kms:dsse}. */
    public Builder sse(String algorithm) {
      return with("sse", algorithm);
    }

    /** Encrypts new objects with this customer-managed key of a key management service. */
    public Builder kmsKey(String key) {
      return with("kms_key", key);
    }

    /** Uses S3 bucket keys, so that S3 sends fewer requests to KMS. */
    public Builder kmsBucketKey(boolean enabled) {
      return with("kms_bucket_key", Boolean.toString(enabled));
    }

    /** Encrypts new objects, and decrypts existing ones, with a key that the store doesn't keep: 32 bytes in base64. */
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

    /** Sets how long a request may go without a byte in either direction before it is sent again. */
    public Builder stallTimeout(Duration timeout) {
      return with("stall_timeout", Long.toString(timeout.toMillis()));
    }

    /**
     * Sets how long Laneway retries while a server makes no progress. After this time, calls fail. Zero disables
     * retries.
     */
    public Builder retryFor(Duration time) {
      return with("retry_for", Long.toString(time.toMillis()));
    }

    /**
     * Sets the maximum number of bytes that the engine holds in memory, at least 1 MiB. It applies only if no other
     * client of the process has started the engine before.
     */
    public Builder memory(long bytes) {
      return with("memory", Long.toString(bytes));
    }

    /**
     * Sets the maximum number of connections of the engine, at least one. It applies only if no other client of the
     * process has started the engine before.
     */
    public Builder connectionsMax(int connections) {
      return with("connections_max", Integer.toString(connections));
    }

    /**
     * Limits the bytes per second that the engine moves. It applies only if no other client of the process has started
     * the engine before.
     */
    public Builder bandwidthLimit(long bytesPerSecond) {
      return with("bandwidth_limit", Long.toString(bytesPerSecond));
    }

    /**
     * Returns the client. Opens no connection.
     *
     * @throws LanewayException for invalid settings, and files that can't be read; the message names the method
     */
    public Laneway build() throws LanewayException {
      Packed packed = new Packed().pairs(settings);
      return new Laneway(Engine.client(packed, provider));
    }

    /** Contains no values, because some are secrets. */
    @Override
    public String toString() {
      return "Laneway.Builder" + settings.stream().map(Map.Entry::getKey).distinct().toList();
    }

    private Builder with(String name, String value) {
      // The name of a header or a variable follows a colon.
      settings.add(Map.entry(name, Objects.requireNonNull(value, () -> OptionNames.method(name.split(":")[0]))));
      return this;
    }
  }
}
