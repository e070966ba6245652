package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.Bucket;
import dev.laneway.MultipartUpload;
import dev.laneway.ObjectMeta;
import dev.laneway.PutOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.TextOutputFormat;
import org.apache.hadoop.mapreduce.task.JobContextImpl;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class CommittingTest {
  private final Configuration conf;
  private final FileSystem files;
  private final Connection connection;
  private final Bucket bucket;
  private final Path output;
  private final String folder;

  CommittingTest(String scheme) throws IOException {
    Configuration store = EmbeddedStore.with("lake").configuration();
    folder = "committing-" + scheme + "-" + System.nanoTime();
    output = new Path(scheme + "://lake/" + folder);
    files = EmbeddedStore.open(scheme + "://lake/", store);
    connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), store));
    bucket = connection.bucket();
    JobConf job = new JobConf(store);
    job.set("mapreduce.outputcommitter.factory.scheme." + scheme, UploadCommitterFactory.class.getName());
    job.set("mapreduce.output.fileoutputformat.outputdir", output.toString());
    conf = job;
  }

  @AfterEach
  void close() throws IOException {
    files.delete(output, true);
    connection.close();
    files.close();
  }

  private TaskAttemptContext attempt(int task, int attempt) {
    return new TaskAttemptContextImpl(conf, new TaskAttemptID("20260101", 1, TaskType.MAP, task, attempt));
  }

  private JobContext job() {
    return new JobContextImpl(conf, attempt(0, 0).getJobID());
  }

  /** Runs a task's attempt up to its end, as MapReduce does. */
  private PathOutputCommitter run(TaskAttemptContext context, String line) throws Exception {
    TextOutputFormat<NullWritable, Text> format = new TextOutputFormat<>();
    PathOutputCommitter committer = assertInstanceOf(UploadCommitter.class, format.getOutputCommitter(context));
    committer.setupTask(context);
    RecordWriter<NullWritable, Text> writer = format.getRecordWriter(context);
    writer.write(NullWritable.get(), new Text(line));
    writer.close(context);
    return committer;
  }

  private List<String> keys() {
    try (Stream<ObjectMeta> objects = bucket.list(folder + "/")) {
      return objects.map(object -> object.key().substring(folder.length() + 1)).filter(key -> !key.isEmpty()).toList();
    }
  }

  /** Azure has no list of uploads. An upload that is aborted or forgotten leaves blocks, which Azure removes after a week. */
  private boolean listsUploads() {
    return !bucket.url().startsWith("az:");
  }

  /** Checks the names of the files with unfinished uploads, on stores that list uploads. */
  private void assertUploads(String... names) throws IOException {
    if (listsUploads()) {
      assertEquals(List.of(names), uploads());
    }
  }

  private List<String> uploads() throws IOException {
    return bucket.multipartUploads(folder + "/").stream().map(upload -> upload.key().substring(folder.length() + 1)).toList();
  }

  /**
   * Makes the completion of a file's upload fail.
   *
   * @return the objects that this leaves under the file's name
   */
  private List<String> spoil(String name) throws IOException {
    String key = folder + "/" + name;
    if (listsUploads()) {
      // A bucket's rule for old uploads may abort an upload.
      bucket.multipartUploads(key).get(0).abort();
      return List.of();
    }
    // On Azure, another writer of the same blob discards the blocks.
    put(name);
    return List.of(name);
  }

  /** Begins an upload of another job, with one part. */
  private Runnable anotherJob() throws IOException {
    MultipartUpload upload = bucket.beginMultipart(folder + "/another-job", PutOptions.NONE);
    String part = upload.uploadPart(1, ByteBuffer.wrap("theirs".getBytes()));
    return () -> {
      assertDoesNotThrow(() -> upload.complete(List.of(part)));
      assertEquals("theirs", assertDoesNotThrow(() -> read("another-job")));
    };
  }

  private String read(String name) throws IOException {
    try (FSDataInputStream in = files.open(new Path(output, name))) {
      return new String(in.readAllBytes());
    }
  }

  @Test
  void nothingIsSeenBeforeTheCommitAndEverythingAfterIt() throws Exception {
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    for (int task = 0; task < 5; task++) {
      TaskAttemptContext context = attempt(task, 0);
      PathOutputCommitter committer = run(context, "task " + task);
      assertTrue(committer.needsTaskCommit(context));
      committer.commitTask(context);
    }
    assertTrue(keys().stream().allMatch(key -> key.startsWith(Uncommitted.JOB)), () -> keys().toString());
    driver.commitJob(job());
    assertEquals(
        List.of("_SUCCESS", "part-m-00000", "part-m-00001", "part-m-00002", "part-m-00003", "part-m-00004"), keys());
    assertEquals("task 3\n", read("part-m-00003"));
    assertUploads();
  }

  @Test
  void anAttemptThatFailedOrWasKilledLeavesNothing() throws Exception {
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    // One attempt is aborted, one stops in the middle of its file, and one ends but never commits.
    TaskAttemptContext aborted = attempt(0, 0);
    run(aborted, "aborted").abortTask(aborted);
    TaskAttemptContext killed = attempt(1, 0);
    PathOutputCommitter half = new UploadCommitterFactory().createOutputCommitter(output, killed);
    FSDataOutputStream out = files.create(new Path(half.getWorkPath(), "part-m-00001"));
    out.write(new byte[9 << 20]);
    run(attempt(2, 0), "never committed");
    // Each task is tried again and succeeds.
    for (int task = 0; task < 3; task++) {
      TaskAttemptContext again = attempt(task, 1);
      run(again, "again " + task).commitTask(again);
    }
    driver.commitJob(job());
    assertEquals(List.of("_SUCCESS", "part-m-00000", "part-m-00001", "part-m-00002"), keys());
    assertEquals("again 1\n", read("part-m-00001"));
    assertEquals("again 2\n", read("part-m-00002"));
    assertUploads();
    out.abort();
  }

  @Test
  void ofTwoAttemptsThatCommittedTheLastOneCounts() throws Exception {
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    for (int attempt = 0; attempt < 2; attempt++) {
      TaskAttemptContext context = attempt(0, attempt);
      run(context, "attempt " + attempt).commitTask(context);
    }
    driver.commitJob(job());
    assertEquals("attempt 1\n", read("part-m-00000"));
    assertUploads();
  }

  @Test
  void aJobThatIsAbortedLeavesNothing() throws Exception {
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    TaskAttemptContext context = attempt(0, 0);
    run(context, "x").commitTask(context);
    run(attempt(1, 0), "y");
    driver.abortJob(job(), JobStatus.State.FAILED);
    assertEquals(List.of(), keys());
    assertUploads();
  }

  @Test
  void aCommitThatFailsTakesBackWhatItHasCompleted() throws Exception {
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    for (int task = 0; task < 3; task++) {
      TaskAttemptContext context = attempt(task, 0);
      run(context, "task " + task).commitTask(context);
    }
    List<String> left = spoil("part-m-00001");
    assertThrows(IOException.class, () -> driver.commitJob(job()));
    assertEquals(left, keys().stream().filter(key -> !key.startsWith(Uncommitted.JOB)).toList());
    driver.abortJob(job(), JobStatus.State.FAILED);
    assertEquals(left, keys());
    assertUploads();
  }

  @Test
  void filesOfPartitionsAndLargeOnesHaveTheirPlaces() throws Exception {
    TaskAttemptContext context = attempt(0, 0);
    PathOutputCommitter committer = new UploadCommitterFactory().createOutputCommitter(output, context);
    committer.setupJob(job());
    committer.setupTask(context);
    Path large = new Path(committer.getWorkPath(), "p=1/q=a b/large");
    byte[] some = new byte[1 << 20];
    try (FSDataOutputStream out = files.create(large)) {
      for (int i = 0; i < 19; i++) {
        Arrays.fill(some, (byte) i);
        out.write(some, 0, some.length - i);
      }
    }
    files.create(new Path(committer.getWorkPath(), "empty")).close();
    assertEquals(19L * (1 << 20) - 171, files.getFileStatus(large).getLen());
    assertTrue(keys().isEmpty());
    committer.commitTask(context);
    committer.commitJob(job());
    assertEquals(0, files.getFileStatus(new Path(output, "empty")).getLen());
    try (FSDataInputStream in = files.open(new Path(output, "p=1/q=a b/large"))) {
      for (int i = 0; i < 19; i++) {
        byte[] read = in.readNBytes((1 << 20) - i);
        assertEquals((byte) i, read[0]);
        assertEquals((byte) i, read[read.length - 1]);
      }
      assertEquals(-1, in.read());
    }
  }

  @Test
  void aJobThatIsAbortedGivesUpItsOwnUploadsAlsoWhereOthersWrite() throws Exception {
    conf.setBoolean("fs.s3a.committer.abort.pending.uploads", false);
    Runnable theirs = anotherJob();
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    TaskAttemptContext context = attempt(0, 0);
    run(context, "x").commitTask(context);
    driver.abortJob(job(), JobStatus.State.FAILED);
    assertUploads("another-job");
    theirs.run();
  }

  @Test
  void oneBucketsSettingLeavesOtherJobsUploads() throws Exception {
    conf.setBoolean("fs.s3a.bucket.lake.committer.abort.pending.uploads", false);
    Runnable theirs = anotherJob();
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    driver.setupJob(job());
    driver.commitJob(job());
    assertUploads("another-job");
    theirs.run();
  }

  @Test
  void aCommitThatIsInterruptedTakesBackWhatItHasCompleted() throws Exception {
    PathOutputCommitter driver = new UploadCommitterFactory().createOutputCommitter(output, attempt(0, 0));
    TaskAttemptContext context = attempt(0, 0);
    run(context, "x").commitTask(context);
    Commits commits = ((LanewayFileSystem) output.getFileSystem(conf)).commits();
    Path job = ((UploadCommitter) driver).getWorkPath().getParent().getParent();
    List<PendingFile> files = commits.committed(job);
    Thread.currentThread().interrupt();
    assertThrows(InterruptedIOException.class, () -> commits.complete(job, files));
    assertTrue(Thread.interrupted());
    assertThrows(FileNotFoundException.class, () -> read("part-m-00000"));
  }

  @Test
  void anUncommittedFileIsReplacedRefusedAndDeletedAsAnother() throws Exception {
    TaskAttemptContext context = attempt(0, 0);
    PathOutputCommitter committer = new UploadCommitterFactory().createOutputCommitter(output, context);
    committer.setupTask(context);
    Path file = new Path(committer.getWorkPath(), "f");
    for (String text : List.of("first", "second one")) {
      try (FSDataOutputStream out = files.create(file, true)) {
        out.writeBytes(text);
      }
    }
    assertEquals(10, files.getFileStatus(file).getLen());
    assertUploads("f");
    assertThrows(FileAlreadyExistsException.class, () -> files.create(file, false));
    assertTrue(files.delete(file, false));
    assertFalse(committer.needsTaskCommit(context));
    assertUploads();
    assertFalse(files.delete(file, false));
    committer.commitTask(context);
    committer.commitJob(job());
    assertEquals(List.of("_SUCCESS"), keys());
  }

  /**
   * Returns the committer of a job for which Spark overwrites partitions dynamically, created as spark-hadoop-cloud does.
   * The committer has the table's directory, and only the output format knows Spark's staging directory.
   */
  private UploadCommitter overwriting(TaskAttemptContext context) throws IOException {
    conf.set("mapreduce.output.fileoutputformat.outputdir", output + "/.spark-staging-1");
    return new UploadCommitter(output, new TaskAttemptContextImpl(conf, context.getTaskAttemptID()));
  }

  private void put(String... keys) throws IOException {
    for (String key : keys) {
      bucket.put(folder + "/" + key, ByteBuffer.wrap(key.getBytes()), PutOptions.NONE);
    }
  }

  @Test
  void partitionsThatGetFilesAreReplacedAndOthersStay() throws Exception {
    put("p=1/old-a", "p=1/old-b", "p=1/deeper/old", "p=1/", "p=10/old", "p=2/old", "root");
    TaskAttemptContext context = attempt(0, 0);
    UploadCommitter committer = overwriting(context);
    committer.setupJob(job());
    committer.setupTask(context);
    for (String name : List.of("p=1/new", "p=3/new")) {
      files.create(new Path(committer.getWorkPath(), name)).close();
    }
    committer.commitTask(context);
    assertTrue(keys().contains("p=1/old-a"), "nothing is removed before the job commits");
    committer.commitJob(job());
    assertEquals(List.of("_SUCCESS", "p=1/", "p=1/new", "p=10/old", "p=2/old", "p=3/new", "root"), keys());
  }

  @Test
  void partitionsOfACommitThatFailsAreAsBefore() throws Exception {
    put("p=1/old");
    TaskAttemptContext context = attempt(0, 0);
    UploadCommitter committer = overwriting(context);
    committer.setupTask(context);
    for (String name : List.of("p=1/new", "p=2/new")) {
      // On Azure, an empty file has no blocks that could be missing.
      try (FSDataOutputStream out = files.create(new Path(committer.getWorkPath(), name))) {
        out.writeBytes(name);
      }
    }
    committer.commitTask(context);
    List<String> left = spoil("p=2/new");
    assertThrows(IOException.class, () -> committer.commitJob(job()));
    committer.abortJob(job(), JobStatus.State.FAILED);
    assertEquals(Stream.concat(Stream.of("p=1/old"), left.stream()).toList(), keys());
  }

  @Test
  void anOrdinaryJobReplacesNoPartition() throws Exception {
    put("p=1/old");
    TaskAttemptContext context = attempt(0, 0);
    UploadCommitter committer = new UploadCommitter(output, context);
    files.create(new Path(committer.getWorkPath(), "p=1/new")).close();
    committer.commitTask(context);
    committer.commitJob(job());
    assertEquals(List.of("_SUCCESS", "p=1/new", "p=1/old"), keys());
  }

  @Test
  void aDirectoryOfAnotherFilesystemIsCommittedAsByHadoop(@TempDir java.nio.file.Path local) throws Exception {
    Path place = new Path(local.resolve("out").toUri());
    TaskAttemptContext context = attempt(0, 0);
    UploadCommitter committer = new UploadCommitter(place, context);
    committer.setupJob(job());
    committer.setupTask(context);
    FileSystem there = place.getFileSystem(conf);
    there.create(new Path(committer.getWorkPath(), "part")).close();
    assertTrue(committer.needsTaskCommit(context));
    assertFalse(there.exists(new Path(place, "part")));
    committer.commitTask(context);
    committer.commitJob(job());
    assertTrue(there.exists(new Path(place, "part")));
    assertFalse(there.exists(new Path(place, "_temporary")));
    assertThrows(
        PathIOException.class, () -> new UploadCommitterFactory().createOutputCommitter(place, context));
  }

  @Test
  void aTaskThatWroteNothingNeedsNoCommit() throws Exception {
    TaskAttemptContext context = attempt(0, 0);
    PathOutputCommitter committer = new UploadCommitterFactory().createOutputCommitter(output, context);
    committer.setupTask(context);
    assertFalse(committer.needsTaskCommit(context));
    assertEquals(output, FileOutputFormat.getOutputPath(context));
  }

  @Test
  void namesThatOnlyLookAlikeAreFilesLikeOthers() {
    assertEquals(
        Optional.of(new Uncommitted("a/_laneway-1/t", "a/p=1/f")), Uncommitted.of("a/_laneway-1/t/base/p=1/f"));
    assertEquals(Optional.of(new Uncommitted("_laneway-1/t", "f")), Uncommitted.of("_laneway-1/t/base/f"));
    for (String key : List.of("a/_laneway-1/task", "a/_laneway-1/t/base", "a/_laneway-1/t/other/f", "a/b/c/d/e")) {
      assertEquals(Optional.empty(), Uncommitted.of(key), key);
    }
  }
}
