package dev.laneway;

import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Translates the names of options in the library's messages, which are those of the program {@code laneway}. */
final class OptionNames {
  private static final Map<String, String> IN_JAVA = Map.ofEntries(
      Map.entry("-r", "JobOptions.recursive"),
      Map.entry("--allow-empty", "JobOptions.allowEmpty"),
      Map.entry("--allow-unverified", "JobOptions.allowUnverified"),
      Map.entry("--anonymous", "Laneway.Builder.anonymous"),
      Map.entry("--ca-cert FILE", "Laneway.Builder.caFile"),
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
      Map.entry("copy with cp -r", "use Laneway.copy with JobOptions.recursive"),
      Map.entry("use cp to", "use Laneway.copy to"));

  /** Finds the program's options in a message, but not options in other programs' commands or in {@code ls -r}. */
  private static final Pattern OPTIONS = Pattern.compile(
      "(?<!login )(?<!ls )(?<![\\w/-])("
          + String.join("|", IN_JAVA.keySet().stream().sorted((a, b) -> b.length() - a.length()).map(Pattern::quote).toList())
          + ")(?![\\w-])");

  private OptionNames() {}

  /** Returns a message of the library with the names of this package. */
  static String inJava(String message) {
    return OPTIONS.matcher(message).replaceAll(found -> Matcher.quoteReplacement(IN_JAVA.get(found.group(1))));
  }
}
