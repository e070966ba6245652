package dev.laneway;

import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Translates the names of options in the library's messages to those of this package. The library uses the names of the
 * program {@code laneway}. The bindings use the names that settings and options have in every language.
 */
final class OptionNames {
  /** The names of settings and options whose methods have another name. The other methods have the name in camel case. */
  private static final Map<String, String> RENAMED = Map.of(
      "access_key_id", "accessKey",
      "filters", "filter",
      "runners", "bandwidthLimit",
      "headers", "header",
      "secret_access_key", "accessKey");

  private static final Set<String> OF_JOBS = Set.of(
      "allow_empty", "allow_unverified", "checksum", "contents", "delete", "dry_run", "durable", "existing",
      "files_from", "filters", "follow_symlinks", "force", "gzip", "ignore_existing", "ignore_symlinks",
      "keep_partial", "max_delete", "max_size", "min_size", "newer", "no_clobber", "older", "preserve", "recursive",
      "remove_source", "size_only", "update");

  /** The options that only plans have. */
  private static final Set<String> OF_PLANS = Set.of(
      "after", "destination_inventory", "extra", "inventory", "lease", "part_bytes", "part_rows", "runners",
      "single_runner", "storage_class", "through");

  private static final Set<String> OF_CLIENTS = Set.of(
      "access_key_id", "anonymous", "assume_role", "azure_account", "azure_credentials", "azure_endpoint",
      "bandwidth_limit", "ca_file", "connections_max", "customer_key", "environment", "gcs_endpoint", "headers",
      "http_proxy", "https_proxy", "impersonate", "kms_bucket_key", "kms_key", "memory", "no_proxy", "profile",
      "region", "request_payer", "retry_for", "s3_accelerate", "s3_dualstack", "s3_endpoint", "s3_fips",
      "s3_path_style", "secret_access_key", "service_account_file", "service_account_key", "session_token", "sse",
      "stall_timeout", "user_agent_suffix", "user_project", "variables");

  /** Finds the name of a setting or an option at the beginning of a message. */
  private static final Pattern SETTING = Pattern.compile("^([a-z0-9_]+)(?=: )");

  private static final Map<String, String> IN_JAVA = Map.ofEntries(
      Map.entry("-r", "JobOptions.recursive"),
      Map.entry(
          "access_key_id and secret_access_key belong together, and session_token needs both of them",
          "Laneway.Builder.sessionToken needs Laneway.Builder.accessKey too"),
      Map.entry("if-absent", "PutOptions.ifAbsent"),
      Map.entry("if-version", "PutOptions.ifVersion"),
      Map.entry(
          "to use other limits, build a separate engine",
          "set Laneway.Builder.memory, connectionsMax and bandwidthLimit for the first client (in Hadoop:"
              + " fs.laneway.memory, fs.laneway.connections.maximum and fs.laneway.bandwidth.limit)"),
      Map.entry("--allow-empty", "JobOptions.allowEmpty"),
      Map.entry("--allow-unverified", "JobOptions.allowUnverified"),
      Map.entry("--anonymous", "Laneway.Builder.anonymous"),
      Map.entry("--ca-cert FILE", "Laneway.Builder.caFile"),
      Map.entry("--azure-account", "Laneway.Builder.azureAccount"),
      Map.entry("--azure-endpoint", "Laneway.Builder.azureEndpoint"),
      Map.entry("--delete", "JobOptions.delete"),
      Map.entry("--existing", "JobOptions.existing"),
      Map.entry("--follow-symlinks", "JobOptions.followSymlinks"),
      Map.entry("--force", "JobOptions.force"),
      Map.entry("--gcs-endpoint", "Laneway.Builder.gcsEndpoint"),
      Map.entry("--ignore-existing", "JobOptions.ignoreExisting"),
      Map.entry("--ignore-symlinks", "JobOptions.ignoreSymlinks"),
      Map.entry("--include and --exclude", "JobOptions.filter"),
      Map.entry("--max-delete", "JobOptions.maxDelete"),
      Map.entry("--no-clobber", "JobOptions.noClobber"),
      Map.entry("--profile", "Laneway.Builder.profile"),
      Map.entry("--retry-for", "Laneway.Builder.retryFor"),
      Map.entry("--s3-endpoint", "Laneway.Builder.s3Endpoint"),
      Map.entry("--single-runner", "PlanOptions.singleRunner"),
      Map.entry("`laneway plan retry`", "Plan.retry"),
      Map.entry("run the command that makes it again", "make the call that makes it again"),
      Map.entry("copy with cp -r", "use Laneway.copy with JobOptions.recursive"),
      Map.entry("run the same command", "run the same job"),
      Map.entry("use cp to", "use Laneway.copy to"));

  /** Finds the program's options in a message, but not options in other programs' commands or in {@code ls -r}. */
  private static final Pattern OPTIONS = Pattern.compile(
      "(?<!login )(?<!ls )(?<![\\w/-])("
          + String.join("|", IN_JAVA.keySet().stream().sorted((a, b) -> b.length() - a.length()).map(Pattern::quote).toList())
          + ")(?![\\w-])");

  private OptionNames() {}

  /** Returns a message about a client or a job, which may begin with the name of a setting or an option. */
  static String ofSetting(String message) {
    return inJava(SETTING.matcher(message).replaceFirst(found -> Matcher.quoteReplacement(method(found.group(1)))));
  }

  /** Returns the method of {@link Laneway.Builder}, {@link JobOptions} or {@link PlanOptions} for a name, or the name if there is none. */
  static String method(String name) {
    if (OF_PLANS.contains(name)) {
      return "PlanOptions." + RENAMED.getOrDefault(name, camel(name, '_'));
    }
    if (!OF_JOBS.contains(name) && !OF_CLIENTS.contains(name)) {
      return name;
    }
    String type = OF_JOBS.contains(name) ? "JobOptions." : "Laneway.Builder.";
    return type + RENAMED.getOrDefault(name, camel(name, '_'));
  }

  /** Returns a name whose words are separated by {@code separator} in camel case. */
  static String camel(String name, char separator) {
    StringBuilder camel = new StringBuilder();
    for (int at = 0; at < name.length(); at++) {
      boolean isNext = name.charAt(at) == separator && at + 1 < name.length();
      camel.append(isNext ? Character.toUpperCase(name.charAt(++at)) : name.charAt(at));
    }
    return camel.toString();
  }

  /** Returns a message of the library with the names of this package. */
  static String inJava(String message) {
    return OPTIONS.matcher(message).replaceAll(found -> Matcher.quoteReplacement(IN_JAVA.get(found.group(1))));
  }
}
