package dev.laneway.hadoop;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits a job's output without renames. When tasks end, their files are in the store under their final names, as
 * invisible uploads. The job's commit completes all of them at once.
 *
 * <p>A task's commit records the task's uploads. Uploads of attempts that failed or were killed are aborted when the
 * job ends. If two jobs write to one directory at the same time, {@code fs.s3a.committer.abort.pending.uploads} must be
 * false, as with S3A's committers: uploads don't name their job.
 *
 * <p>This class extends {@link FileOutputCommitter}, because Spark's own commit protocol asks only such committers for
 * the path of a task's files. In a directory of another filesystem, this class does the same as {@link
 * FileOutputCommitter}. So one setting can name this class for all of Spark's Parquet files.
 */
public class UploadCommitter extends FileOutputCommitter {
  private static final Logger LOG = LoggerFactory.getLogger(UploadCommitter.class);

  /** The beginning of the name of Spark's directory for new partitions that will replace older ones. */
  private static final String SPARK_STAGING = ".spark-staging-";

  /** The output directory; null if another filesystem has it, or if there is none. */
  private final Path output;

  private final Path job;
  private final Path work;

  /** True if the job replaces each partition that it writes. */
  private final boolean replacesPartitions;

  /** Called by Hadoop and Spark, for a task's attempt or, on the driver's side, for the job. */
  public UploadCommitter(Path output, TaskAttemptContext context) throws IOException {
    super(output, context);
    FileSystem files = output == null ? null : output.getFileSystem(context.getConfiguration());
    if (files instanceof LanewayFileSystem) {
      this.output = files.makeQualified(output);
      this.job = new Path(this.output, Uncommitted.JOB + name(context));
      this.work = new Path(new Path(job, context.getTaskAttemptID().toString()), Uncommitted.BASE);
      this.replacesPartitions = replacesPartitions(files, this.output, context);
    } else {
      this.output = null;
      this.job = null;
      this.work = null;
      this.replacesPartitions = false;
    }
  }

  /**
   * Returns the path under which an attempt writes its files. Nothing is stored at this path: the bytes are in
   * uncommitted uploads of the final files.
   */
  @Override
  public Path getWorkPath() throws IOException {
    return output == null ? super.getWorkPath() : work;
  }

  @Override
  public void setupJob(JobContext context) throws IOException {
    if (output == null) {
      super.setupJob(context);
    } else {
      output.getFileSystem(context.getConfiguration()).mkdirs(output);
    }
  }

  @Override
  public void setupTask(TaskAttemptContext context) throws IOException {
    if (output == null) {
      super.setupTask(context);
    } else {
      // If the same attempt was already tried, remove the files of that try.
      commits(context).abortTask(work.getParent());
    }
  }

  @Override
  public boolean needsTaskCommit(TaskAttemptContext context) throws IOException {
    return output == null ? super.needsTaskCommit(context) : commits(context).hasWritten(work.getParent());
  }

  @Override
  public void commitTask(TaskAttemptContext context) throws IOException {
    if (output == null) {
      super.commitTask(context);
    } else {
      commits(context).commitTask(work.getParent(), new Path(job, context.getTaskAttemptID().getTaskID().toString()));
    }
  }

  @Override
  public void abortTask(TaskAttemptContext context) throws IOException {
    if (output == null) {
      super.abortTask(context);
    } else {
      commits(context).abortTask(work.getParent());
    }
  }

  /**
   * Completes all files. If Spark overwrites partitions dynamically, this method then removes the older files of each
   * partition that gets a new file.
   */
  @Override
  public void commitJob(JobContext context) throws IOException {
    if (output == null) {
      super.commitJob(context);
      return;
    }
    Commits commits = commits(context);
    if (replacesPartitions) {
      commits.replacePartitions(output, job);
    } else {
      commits.commitJob(job);
    }
    Configuration conf = context.getConfiguration();
    if (conf.getBoolean(SUCCESSFUL_JOB_OUTPUT_DIR_MARKER, true)) {
      Path success = new Path(output, SUCCEEDED_FILE_NAME);
      output.getFileSystem(conf).create(success, true).close();
    }
    try {
      commits.cleanUp(output, job, abortsUploads(conf));
    } catch (IOException failed) {
      // The output is complete, and the success file exists.
      LOG.warn("something is left of the job that wrote {}", output, failed);
    }
  }

  /** Returns false: completed uploads can't be completed again. */
  @Override
  public boolean isCommitJobRepeatable(JobContext context) throws IOException {
    return output == null && super.isCommitJobRepeatable(context);
  }

  @Override
  public void abortJob(JobContext context, JobStatus.State state) throws IOException {
    if (output == null) {
      super.abortJob(context, state);
      return;
    }
    Commits commits = commits(context);
    try {
      // These uploads are the job's own, even if other jobs write to the directory.
      commits.abortJob(job);
    } finally {
      commits.cleanUp(output, job, abortsUploads(context.getConfiguration()));
    }
  }

  @Override
  @Deprecated
  public void cleanupJob(JobContext context) throws IOException {
    if (output == null) {
      super.cleanupJob(context);
    } else {
      commits(context).cleanUp(output, job, abortsUploads(context.getConfiguration()));
    }
  }

  /** Returns false: only the process that wrote a task's files knows them before the task commits. */
  @Override
  @Deprecated
  public boolean isRecoverySupported() {
    return output == null && super.isRecoverySupported();
  }

  @Override
  public boolean isRecoverySupported(JobContext context) throws IOException {
    return output == null && super.isRecoverySupported(context);
  }

  @Override
  public void recoverTask(TaskAttemptContext context) throws IOException {
    if (output != null) {
      throw new IOException("tasks of another application attempt can't be recovered in " + output);
    }
    super.recoverTask(context);
  }

  @Override
  public String toString() {
    return output == null ? super.toString() : "UploadCommitter[" + output + "]";
  }

  /** Returns whether this commits without renames, because the output is in a {@link LanewayFileSystem}. */
  boolean isWithoutRenames() {
    return output != null;
  }

  private Commits commits(JobContext context) throws IOException {
    return ((LanewayFileSystem) output.getFileSystem(context.getConfiguration())).commits();
  }

  /**
   * Returns whether Spark overwrites partitions dynamically and leaves this to the committer. The output format's
   * directory is then Spark's staging directory in the output. With Spark's own commit protocol, that directory is the
   * committer's output, and Spark moves the partitions itself.
   */
  private static boolean replacesPartitions(FileSystem files, Path output, JobContext context) {
    Path staging = FileOutputFormat.getOutputPath(context);
    return staging != null
        && staging.getName().startsWith(SPARK_STAGING)
        && files.makeQualified(staging.getParent()).equals(output);
  }

  /** S3A's key applies to GCS too, because the GCS connector has none. */
  private boolean abortsUploads(Configuration conf) {
    Values values = new Values(conf, Settings.Store.S3.family, output.toUri().getAuthority());
    return values.flag("committer.abort.pending.uploads").orElse(true);
  }

  /**
   * Returns a unique name of the job. In Hadoop, Spark's jobs that start in the same second have the same name, so this
   * returns Spark's own name for them.
   */
  private static String name(JobContext context) {
    String ofSpark = context.getConfiguration().getTrimmed("spark.sql.sources.writeJobUUID", "");
    return ofSpark.isEmpty() ? context.getJobID().toString() : ofSpark;
  }
}
