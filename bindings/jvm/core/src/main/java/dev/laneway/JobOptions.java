package dev.laneway;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Consumer;

/** What a job is to do besides. Each setter gives other options; one that the job has no use for is refused when it begins. */
public final class JobOptions {
  /** Nothing besides. */
  public static final JobOptions NONE = new JobOptions(new TreeMap<>(), List.of(), PutOptions.NONE, null);

  private final TreeMap<String, String> wishes;
  private final List<String> filters;
  private final PutOptions put;
  private final Consumer<Progress> progress;

  private JobOptions(
      TreeMap<String, String> wishes, List<String> filters, PutOptions put, Consumer<Progress> progress) {
    this.wishes = wishes;
    this.filters = filters;
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

  /** A rule of which names are meant, as in a file of filters: {@code + *.parquet}, {@code - *}. The first that matches counts. */
  public JobOptions filter(String rule) {
    List<String> more = new ArrayList<>(filters);
    more.add(Objects.requireNonNull(rule, "rule"));
    return new JobOptions(wishes, more, put, progress);
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
    return new JobOptions(wishes, filters, Objects.requireNonNull(options, "options"), progress);
  }

  /** Told how far the job is, about ten times a second, on the common pool. A job whose listener doesn't return stands still in the end. */
  public JobOptions onProgress(Consumer<Progress> progress) {
    return new JobOptions(wishes, filters, put, Objects.requireNonNull(progress, "progress"));
  }

  Consumer<Progress> progress() {
    return progress;
  }

  void write(Packed to) {
    to.texts(wishes).number(filters.size());
    filters.forEach(to::text);
    put.write(to);
  }

  private JobOptions with(String name, String value) {
    TreeMap<String, String> more = new TreeMap<>((Map<String, String>) wishes);
    more.put(name, value);
    return new JobOptions(more, filters, put, progress);
  }
}
