package dev.laneway.hadoop;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory;

/** Makes {@link UploadCommitter}s, if {@code mapreduce.outputcommitter.factory.scheme.SCHEME} names this class. */
public class UploadCommitterFactory extends PathOutputCommitterFactory {
  /**
   * Returns the committer of an output directory.
   *
   * @throws PathIOException if another filesystem is configured for the output
   */
  @Override
  public PathOutputCommitter createOutputCommitter(Path outputPath, TaskAttemptContext context) throws IOException {
    UploadCommitter committer = new UploadCommitter(outputPath, context);
    if (outputPath != null && !committer.isWithoutRenames()) {
      String other = outputPath.getFileSystem(context.getConfiguration()).getClass().getName();
      throw new PathIOException(
          outputPath.toString(), "is of " + other + ", whose files can't be committed without renames");
    }
    return committer;
  }
}
