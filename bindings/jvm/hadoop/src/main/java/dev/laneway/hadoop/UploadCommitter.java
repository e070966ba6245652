package dev.laneway.hadoop;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits a job's output without renames. When tasks end, their files are in the store under their final names, as
 * invisible uploads. The job's commit completes all of them at once.
 *
 * <p>A task's commit records the task's uploads. Uploads of attempts that failed or were killed are aborted when the
 * job ends. If two jobs write to one directory at the same time, {@code fs.s3a.committer.abort.pending.uploads} must be
 * false, as with S3A's committers: uploads don't name their job.
 */
public class UploadCommitter extends PathOutputCommitter {
  private static final Logger LOG = LoggerFactory.getLogger(UploadCommitter.class);

  private final Path output;
  private final Path job;
  private final Path work;

  /**
   * Called by Hadoop, for a task's attempt or, on the driver's side, for the job.
   *
   * @throws PathIOException if another filesystem is configured for the output
   */
  public UploadCommitter(Path output, TaskAttemptContext context) throws IOException {
    super(output, context);
    FileSystem files = output.getFileSystem(context.getConfiguration());
    this.output = files.makeQualified(output);
    this.job = new Path(this.output, Uncommitted.JOB + name(context));
    this.work = new Path(new Path(job, context.getTaskAttemptID().toString()), Uncommitted.BASE);
    commits(context);
  }

  @Override
  public Path getOutputPath() {
    return output;
  }

  /**
   * Returns the path under which an attempt writes its files. They are never stored there, but under their final names,
   * uncommitted.
   */
  @Override
  public Path getWorkPath() {
    return work;
  }

  @Override
  public void setupJob(JobContext context) throws IOException {
    output.getFileSystem(context.getConfiguration()).mkdirs(output);
  }

  @Override
  public void setupTask(TaskAttemptContext context) throws IOException {
    // Remove the files of an earlier try of the same attempt.
    commits(context).abortTask(work.getParent());
  }

  @Override
  public boolean needsTaskCommit(TaskAttemptContext context) throws IOException {
    return commits(context).hasWritten(work.getParent());
  }

  @Override
  public void commitTask(TaskAttemptContext context) throws IOException {
    commits(context).commitTask(work.getParent(), new Path(job, context.getTaskAttemptID().getTaskID().toString()));
  }

  @Override
  public void abortTask(TaskAttemptContext context) throws IOException {
    commits(context).abortTask(work.getParent());
  }

  @Override
  public void commitJob(JobContext context) throws IOException {
    Commits commits = commits(context);
    commits.commitJob(job);
    Configuration conf = context.getConfiguration();
    if (conf.getBoolean(FileOutputCommitter.SUCCESSFUL_JOB_OUTPUT_DIR_MARKER, true)) {
      Path success = new Path(output, FileOutputCommitter.SUCCEEDED_FILE_NAME);
      output.getFileSystem(conf).create(success, true).close();
    }
    try {
      commits.cleanUp(output, job, abortsUploads(conf));
    } catch (IOException failed) {
      // The output is complete and marked as such.
      LOG.warn("something is left of the job that wrote {}", output, failed);
    }
  }

  @Override
  public void abortJob(JobContext context, JobStatus.State state) throws IOException {
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
    commits(context).cleanUp(output, job, abortsUploads(context.getConfiguration()));
  }

  @Override
  public String toString() {
    return "UploadCommitter[" + output + "]";
  }

  private Commits commits(JobContext context) throws IOException {
    FileSystem files = output.getFileSystem(context.getConfiguration());
    if (files instanceof LanewayFileSystem ours) {
      return ours.commits();
    }
    throw new PathIOException(output.toString(), "is of " + files.getClass().getName() + ", whose files can't be committed so");
  }

  private static boolean abortsUploads(Configuration conf) {
    return conf.getBoolean("fs.s3a.committer.abort.pending.uploads", true);
  }

  /**
   * Returns a unique name of the job. Spark's jobs of the same second share the name that Hadoop knows, and Spark has a
   * better one.
   */
  private static String name(JobContext context) {
    String ofSpark = context.getConfiguration().getTrimmed("spark.sql.sources.writeJobUUID", "");
    return ofSpark.isEmpty() ? context.getJobID().toString() : ofSpark;
  }
}
