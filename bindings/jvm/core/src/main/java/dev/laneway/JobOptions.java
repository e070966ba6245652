package dev.laneway;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/** What a job is to do besides. Each setter gives other options; one that the job has no use for is refused when it begins. */
public final class JobOptions {
  /** Nothing besides. */
  public static final JobOptions NONE = new JobOptions(List.of(), PutOptions.NONE, null);

  private final List<Map.Entry<String, String>> wishes;
  private final PutOptions put;
  private final Consumer<Progress> progress;

  private JobOptions(List<Map.Entry<String, String>> wishes, PutOptions put, Consumer<Progress> progress) {
    this.wishes = wishes;
    this.put = put;
    this.progress = progress;
  }

  /** Copies and removals: with all that directories and prefixes hold. */
  public JobOptions recursive() {
    return with("recursive", "true");
  }

  /** Copies: each source is removed once its copy is verified. */
  public JobOptions removeSource() {
    return with("remove_source", "true");
  }

  /** Only tells what would be done. */
  public JobOptions dryRun() {
    return with("dry_run", "true");
  }

  /** Copies: leaves destinations that exist as they are. */
  public JobOptions noClobber() {
    return with("no_clobber", "true");
  }

  /** Copies: what a tree holds goes straight into the destination, and not below the tree's own name. */
  public JobOptions contents() {
    return with("contents", "true");
  }

  /** Flushes files and their directories to disk before an item counts as done. */
  public JobOptions durable() {
    return with("durable", "true");
  }

  /** When the job is cancelled, leaves what has come of large objects for the same job to go on with. */
  public JobOptions keepPartial() {
    return with("keep_partial", "true");
  }

  /** Keeps times, modes and owners of files with objects, and sets them on files. */
  public JobOptions preserve() {
    return with("preserve", "true");
  }

  /** Enters directories through symbolic links too. */
  public JobOptions followSymlinks() {
    return with("follow_symlinks", "true");
  }

  /** Syncs: removes at the destination what the source doesn't have, after everything was copied and only where nothing failed. */
  public JobOptions delete() {
    return with("delete", "true");
  }

  /** Syncs: that may be done where the source has nothing at all. */
  public JobOptions allowEmpty() {
    return with("allow_empty", "true");
  }

  /** Syncs: where more than so many would be removed, none is. */
  public JobOptions maxDelete(long most) {
    return with("max_delete", Long.toString(most));
  }

  /** Syncs: compares what has the same size on both sides by checksums. */
  public JobOptions checksum() {
    return with("checksum", "true");
  }

  /** Syncs: copies only what the destination has already. */
  public JobOptions existing() {
    return with("existing", "true");
  }

  /** Syncs: copies only what the destination doesn't have. */
  public JobOptions ignoreExisting() {
    return with("ignore_existing", "true");
  }

  /** Syncs: compares what both sides have by size alone. */
  public JobOptions sizeOnly() {
    return with("size_only", "true");
  }

  /** Syncs: leaves alone what is newer at the destination, whatever its size. */
  public JobOptions update() {
    return with("update", "true");
  }

  /** Syncs: leaves out symbolic links. */
  public JobOptions ignoreSymlinks() {
    return with("ignore_symlinks", "true");
  }

  /** Copies: compresses files with these extensions on their way up. */
  public JobOptions gzip(List<String> extensions) {
    JobOptions options = this;
    for (String extension : extensions) {
      options = options.with("gzip", extension);
    }
    return options;
  }

  /**
   * Only what the lines of a file name, below the one source; nothing is listed then. Copies and removals take no filter, time or size beside it; a sync applies
   * them to the names.
   */
  public JobOptions filesFrom(String file) {
    return with("files_from", file);
  }

  /** A rule of which names are meant, as in a file of filters: {@code + *.parquet}, {@code - *}. The first that matches counts. */
  public JobOptions filter(String rule) {
    return with("filters", rule);
  }

  /** Only what changed after this time. */
  public JobOptions newer(Instant time) {
    return with("newer", Long.toString(time.toEpochMilli()));
  }

  /** Only what changed before this time. */
  public JobOptions older(Instant time) {
    return with("older", Long.toString(time.toEpochMilli()));
  }

  /** Only what has at least so many bytes. */
  public JobOptions minSize(long bytes) {
    return with("min_size", Long.toString(bytes));
  }

  /** Only what has at most so many bytes. */
  public JobOptions maxSize(long bytes) {
    return with("max_size", Long.toString(bytes));
  }

  /** Copies and syncs: what new objects are to be. */
  public JobOptions put(PutOptions options) {
    return new JobOptions(wishes, Objects.requireNonNull(options, "options"), progress);
  }

  /** Told how far the job is, about ten times a second, on the common pool. A job whose listener doesn't return stands still in the end. */
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
    more.add(Map.entry(name, Objects.requireNonNull(value, name)));
    return new JobOptions(more, put, progress);
  }
}
