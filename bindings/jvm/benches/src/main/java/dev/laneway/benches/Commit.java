package dev.laneway.benches;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitterFactory;
import org.apache.hadoop.mapreduce.task.JobContextImpl;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/**
 * A job whose tasks write files of 10 kB. The benchmark measures the tasks and the job's commit, and reports the
 * commit's time.
 */
final class Commit {
  private static final int FILES_OF_A_TASK = 10;
  private static final int TASKS_AT_ONCE = 16;

  private Commit() {}

  static Map<String, Object> run(FileSystem files, Path place, Configuration conf, int count) throws Exception {
    conf.set("mapreduce.output.fileoutputformat.outputdir", place.toString());
    JobContextImpl job = new JobContextImpl(conf, attempt(conf, 0).getJobID());
    PathOutputCommitter driver = committer(place, conf, 0);
    driver.setupJob(job);
    long begun = System.nanoTime();
    ExecutorService threads = Executors.newFixedThreadPool(TASKS_AT_ONCE, work -> {
      Thread thread = new Thread(work);
      thread.setDaemon(true);
      return thread;
    });
    List<Future<?>> tasks = new ArrayList<>();
    for (int i = 0; i < count / FILES_OF_A_TASK; i++) {
      int task = i;
      tasks.add(threads.submit(() -> {
        task(files, place, conf, task);
        return null;
      }));
    }
    for (Future<?> task : tasks) {
      task.get();
    }
    threads.shutdown();
    long written = System.nanoTime();
    driver.commitJob(job);
    double commit = (System.nanoTime() - written) / 1e9;
    long there = 0;
    for (var all = files.listFiles(place, true); all.hasNext(); ) {
      there += all.next().getPath().getName().startsWith("part-") ? 1 : 0;
    }
    files.delete(place, true);
    return Map.of("t0_s", commit, "tasks_s", (written - begun) / 1e9, "ok", there == count);
  }

  private static void task(FileSystem files, Path place, Configuration conf, int task) throws IOException {
    TaskAttemptContext context = attempt(conf, task);
    PathOutputCommitter committer = committer(place, conf, task);
    committer.setupTask(context);
    for (int i = 0; i < FILES_OF_A_TASK; i++) {
      try (FSDataOutputStream out = files.create(new Path(committer.getWorkPath(), "part-" + task + "-" + i), true)) {
        out.write(new byte[10_000]);
      }
    }
    if (committer.needsTaskCommit(context)) {
      committer.commitTask(context);
    }
  }

  private static TaskAttemptContext attempt(Configuration conf, int task) {
    return new TaskAttemptContextImpl(conf, new TaskAttemptID("20260101", 1, TaskType.MAP, task, 0));
  }

  private static PathOutputCommitter committer(Path place, Configuration conf, int task) throws IOException {
    return PathOutputCommitterFactory.createCommitter(place, attempt(conf, task));
  }
}
