package dev.laneway;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * Options of actions on a {@link Plan}. Each setter returns new options. If the description of an option begins with a
 * kind of action, as in "Syncs:", the option is only for such actions. Any other action with this option fails when it
 * begins.
 */
public final class PlanOptions {
  /** No options. */
  public static final PlanOptions NONE = new PlanOptions(List.of(), row -> {});

  private final List<Map.Entry<String, String>> wishes;
  private final Consumer<Plan.Row> onRow;

  private PlanOptions(List<Map.Entry<String, String>> wishes, Consumer<Plan.Row> onRow) {
    this.wishes = wishes;
    this.onRow = onRow;
  }

  /** Planning: only counts, and writes nothing. */
  public PlanOptions dryRun() {
    return with("dry_run", "true");
  }

  /** Planning: ends a part after this many objects, instead of 100,000. */
  public PlanOptions partRows(long rows) {
    return with("part_rows", Long.toString(rows));
  }

  /** Planning: ends a part after objects of this total size, instead of 256 GiB. */
  public PlanOptions partBytes(long bytes) {
    return with("part_bytes", Long.toString(bytes));
  }

  /**
   * Planning: plans only names after this one, relative to the prefix. Other calls plan the other ranges into the same
   * folder.
   */
  public PlanOptions after(String name) {
    return with("after", name);
  }

  /** Planning: plans only names up to this one, relative to the prefix. A name that equals it is included. */
  public PlanOptions through(String name) {
    return with("through", name);
  }

  /**
   * Planning: reads an inventory instead of a listing of the source. It is the manifest of S3 Inventory or of a Storage
   * Insights report, or the output of {@code laneway ls -r --json}, and must be sorted by key.
   */
  public PlanOptions inventory(String place) {
    return with("inventory", place);
  }

  /** Planning: adds a rule that includes or excludes names, as in {@link JobOptions#filter}. */
  public PlanOptions filter(String rule) {
    return with("filters", rule);
  }

  /** Planning: includes only objects that changed after this time. */
  public PlanOptions newer(Instant time) {
    return with("newer", Long.toString(time.toEpochMilli()));
  }

  /** Planning: includes only objects that changed before this time. */
  public PlanOptions older(Instant time) {
    return with("older", Long.toString(time.toEpochMilli()));
  }

  /** Planning: includes only objects of at least this many bytes. */
  public PlanOptions minSize(long bytes) {
    return with("min_size", Long.toString(bytes));
  }

  /** Planning: includes only objects of at most this many bytes. */
  public PlanOptions maxSize(long bytes) {
    return with("max_size", Long.toString(bytes));
  }

  /** Copies: skips objects that exist at the destination when their part runs. */
  public PlanOptions noClobber() {
    return with("no_clobber", "true");
  }

  /** Copies and syncs: gives the copies this storage class. */
  public PlanOptions storageClass(String name) {
    return with("storage_class", name);
  }

  /**
   * Copies and syncs: lets this many runners share a bandwidth, in bytes a second. All runners together never use more.
   * Further runners wait.
   */
  public PlanOptions bandwidthLimit(long bytesPerSecond, int runners) {
    return with("bandwidth_limit", Long.toString(bytesPerSecond)).with("runners", Integer.toString(runners));
  }

  /** Syncs: removes objects from the destination that the source lacks, once every copy has succeeded. */
  public PlanOptions delete() {
    return with("delete", "true");
  }

  /** Syncs: plans nothing if more than this many objects would be removed. */
  public PlanOptions maxDelete(long most) {
    return with("max_delete", Long.toString(most));
  }

  /** Syncs: allows removals even if the source is empty. */
  public PlanOptions allowEmpty() {
    return with("allow_empty", "true");
  }

  /** Syncs: compares objects of equal size by checksum, not by time. */
  public PlanOptions checksum() {
    return with("checksum", "true");
  }

  /** Syncs: compares objects by size alone. */
  public PlanOptions sizeOnly() {
    return with("size_only", "true");
  }

  /** Syncs: reads an inventory instead of a listing of the destination. */
  public PlanOptions destinationInventory(String place) {
    return with("destination_inventory", place);
  }

  /**
   * Runs: lets another runner repeat the part if this process has died, and so hasn't renewed its lease for this time.
   * The default is a minute.
   */
  public PlanOptions lease(Duration term) {
    return with("lease", Long.toString(term.toMillis()));
  }

  /** Runs: allows a folder in a store that ignores conditional writes. Nobody else may run the plan then. */
  public PlanOptions singleRunner() {
    return with("single_runner", "true");
  }

  /** Comparisons with {@link Plan#verify}: also reports objects at the destination that the plan doesn't name. */
  public PlanOptions extra() {
    return with("extra", "true");
  }

  /**
   * Calls a listener with each row that fails while a part runs, or with which a comparison finds fault. The calls come
   * on the thread that waits for the action. An exception of the listener ends the action.
   */
  public PlanOptions onRow(Consumer<Plan.Row> listener) {
    return new PlanOptions(wishes, Objects.requireNonNull(listener, "listener"));
  }

  Consumer<Plan.Row> onRow() {
    return onRow;
  }

  /** Returns options with an argument of an action, such as its source. If it is null, the exception shows its name. */
  PlanOptions argument(String name, String value) {
    List<Map.Entry<String, String>> more = new ArrayList<>(wishes);
    more.add(Map.entry(name, Objects.requireNonNull(value, name)));
    return new PlanOptions(more, onRow);
  }

  List<Map.Entry<String, String>> wishes() {
    return wishes;
  }

  private PlanOptions with(String name, String value) {
    List<Map.Entry<String, String>> more = new ArrayList<>(wishes);
    more.add(Map.entry(name, Objects.requireNonNull(value, () -> OptionNames.method(name))));
    return new PlanOptions(more, onRow);
  }
}
