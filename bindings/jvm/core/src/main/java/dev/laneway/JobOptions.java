package dev.laneway;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Options of a job. Each setter returns new options. If the description of an option begins with a kind of job, as in
 * "Syncs:", the option is only for such jobs. Any other job with this option fails when it begins.
 */
public final class JobOptions {
  /** No options. */
  public static final JobOptions NONE = new JobOptions(List.of(), PutOptions.NONE, null);

  private final List<Map.Entry<String, String>> wishes;
  private final PutOptions put;
  private final Consumer<Progress> progress;

  private JobOptions(List<Map.Entry<String, String>> wishes, PutOptions put, Consumer<Progress> progress) {
    this.wishes = wishes;
    this.put = put;
    this.progress = progress;
  }

  /** Copies and removals: includes all content of directories and prefixes. */
  public JobOptions recursive() {
    return with("recursive", "true");
  }

  /** Copies: removes each source once its copy is verified. */
  public JobOptions removeSource() {
    return with("remove_source", "true");
  }

  /** Copies: {@link #removeSource} removes a source even if its copy could only be compared by size. */
  public JobOptions allowUnverified() {
    return with("allow_unverified", "true");
  }

  /** Only reports what would be done. */
  public JobOptions dryRun() {
    return with("dry_run", "true");
  }

  /** Copies: leaves existing destinations as they are. */
  public JobOptions noClobber() {
    return with("no_clobber", "true");
  }

  /** Copies: puts the content of a tree directly into the destination, not below the tree's own name. */
  public JobOptions contents() {
    return with("contents", "true");
  }

  /** Flushes files and their directories to disk before an item counts as done. */
  public JobOptions durable() {
    return with("durable", "true");
  }

  /**
   * When the job is cancelled, keeps the bytes of unfinished large objects, so that the same job can resume with them.
   */
  public JobOptions keepPartial() {
    return with("keep_partial", "true");
  }

  /**
   * Stores the times, modes and owners of files in the metadata of their objects, and restores them in downloaded
   * files.
   */
  public JobOptions preserve() {
    return with("preserve", "true");
  }

  /** Also enters directories through symbolic links. */
  public JobOptions followSymlinks() {
    return with("follow_symlinks", "true");
  }

  /**
   * Syncs: removes items at the destination that the source doesn't have, after everything was copied and only if
   * nothing failed.
   */
  public JobOptions delete() {
    return with("delete", "true");
  }

  /** Syncs: allows removals even if the source is empty. */
  public JobOptions allowEmpty() {
    return with("allow_empty", "true");
  }

  /**
   * Syncs: lets {@link #delete} run on a destination that contains only a folder with the source's name, and remove
   * that folder. Such a folder is usually an earlier copy of the source.
   */
  public JobOptions force() {
    return with("force", "true");
  }

  /** Syncs: removes nothing if more than this many items would be removed. */
  public JobOptions maxDelete(long most) {
    return with("max_delete", Long.toString(most));
  }

  /** Syncs: compares items of equal size by checksum. */
  public JobOptions checksum() {
    return with("checksum", "true");
  }

  /** Syncs: copies only items that already exist at the destination. */
  public JobOptions existing() {
    return with("existing", "true");
  }

  /** Syncs: copies only items that don't exist at the destination. */
  public JobOptions ignoreExisting() {
    return with("ignore_existing", "true");
  }

  /** Syncs: compares items by size alone. */
  public JobOptions sizeOnly() {
    return with("size_only", "true");
  }

  /** Syncs: leaves an item as it is if it is newer at the destination, even if the sizes differ. */
  public JobOptions update() {
    return with("update", "true");
  }

  /** Syncs: skips symbolic links. */
  public JobOptions ignoreSymlinks() {
    return with("ignore_symlinks", "true");
  }

  /** Copies: compresses files with these extensions during upload. */
  public JobOptions gzip(List<String> extensions) {
    JobOptions options = this;
    for (String extension : extensions) {
      options = options.with("gzip", extension);
    }
    return options;
  }

  /**
   * Works only on the names in this file, without a listing. The names are relative to the source, and only one source
   * is allowed. {@code file} is a path or URL. Copies and removals can't combine this option with filters, times or
   * sizes. A sync applies its filters, times and sizes to the names.
   */
  public JobOptions filesFrom(String file) {
    return with("files_from", file);
  }

  /**
   * Adds a rule that includes or excludes names, such as {@code + *.parquet} or {@code - *.tmp}. A rule must begin with
   * {@code "+ "} or {@code "- "}; the job refuses any other rule. Rules apply in order, and the first rule that matches
   * a name decides. With only {@code +} rules, everything else is excluded.
   */
  public JobOptions filter(String rule) {
    return with("filters", rule);
  }

  /** Includes only items that changed after this time. */
  public JobOptions newer(Instant time) {
    return with("newer", Long.toString(time.toEpochMilli()));
  }

  /** Includes only items that changed before this time. */
  public JobOptions older(Instant time) {
    return with("older", Long.toString(time.toEpochMilli()));
  }

  /** Includes only items of at least this many bytes. */
  public JobOptions minSize(long bytes) {
    return with("min_size", Long.toString(bytes));
  }

  /** Includes only items of at most this many bytes. */
  public JobOptions maxSize(long bytes) {
    return with("max_size", Long.toString(bytes));
  }

  /** Copies and syncs: sets the properties of new objects. */
  public JobOptions put(PutOptions options) {
    return new JobOptions(wishes, Objects.requireNonNull(options, "options"), progress);
  }

  /**
   * Calls a listener with the job's progress, at most ten times a second and once at the end. The calls come on a thread
   * of the common pool. If the listener doesn't return, the job eventually stalls. If the listener throws, Laneway logs
   * the first exception and continues.
   */
  public JobOptions onProgress(Consumer<Progress> progress) {
    return new JobOptions(wishes, put, Objects.requireNonNull(progress, "progress"));
  }

  Consumer<Progress> progress() {
    return progress;
  }

  void write(Packed to) {
    put.write(to.pairs(wishes));
  }

  private JobOptions with(String name, String value) {
    List<Map.Entry<String, String>> more = new ArrayList<>(wishes);
    more.add(Map.entry(name, Objects.requireNonNull(value, () -> OptionNames.method(name))));
    return new JobOptions(more, put, progress);
  }
}
