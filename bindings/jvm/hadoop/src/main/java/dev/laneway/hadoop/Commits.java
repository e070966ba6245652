package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.Download;
import dev.laneway.ErrorKind;
import dev.laneway.GetOptions;
import dev.laneway.LanewayException;
import dev.laneway.ListOptions;
import dev.laneway.Listing;
import dev.laneway.MultipartUpload;
import dev.laneway.ObjectMeta;
import dev.laneway.PutOptions;
import dev.laneway.Written;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Commits files that tasks have written as multipart uploads. Each task commits first, and then the whole job. */
final class Commits {
  private static final Logger LOG = LoggerFactory.getLogger(Commits.class);

  private final Bucket bucket;
  private final Keys keys;
  private final Deletion deletion;
  private final Tally tally;

  Commits(Bucket bucket, Keys keys, Deletion deletion, Tally tally) {
    this.bucket = bucket;
    this.keys = keys;
    this.deletion = deletion;
    this.tally = tally;
  }

  /** Returns whether an attempt has written a file in this process. */
  boolean hasWritten(Path attempt) {
    return Attempts.hasWritten(bucket.url(), keys.of(attempt));
  }

  /** Records the uploads of a task, in one request. The record of another attempt that committed before is replaced. */
  void commitTask(Path attempt, Path task) throws IOException {
    List<PendingFile> files = Attempts.files(bucket.url(), keys.of(attempt));
    tally.put();
    Failures.await(task, bucket.putAsync(keys.of(task), ByteBuffer.wrap(PendingFile.write(files)), PutOptions.NONE));
    // Forget the files only now. If the record can't be written, the attempt is aborted or commits again, and both need
    // the files.
    Attempts.take(bucket.url(), keys.of(attempt));
  }

  /** Aborts the files that an attempt has written in this process. */
  void abortTask(Path attempt) throws IOException {
    abort(attempt, Attempts.take(bucket.url(), keys.of(attempt)));
  }

  /**
   * Completes the uploads of all committed tasks, all at once.
   *
   * @throws IOException if one can't be completed; completed ones are then removed
   */
  void commitJob(Path job) throws IOException {
    complete(job, committed(job));
  }

  /**
   * Completes the uploads of all committed tasks, and then removes the older files of each partition that has got a new
   * file. Readers see the old and the new files for a moment. If the commit fails before that, the partitions don't
   * change.
   *
   * @param output the directory that contains the partitions
   */
  void replacePartitions(Path output, Path job) throws IOException {
    List<PendingFile> files = committed(job);
    List<String> older = older(output, files);
    complete(job, files);
    try {
      deletion.deleteAll(output, older.iterator());
    } catch (IOException failed) {
      throw new PathIOException(
          output.toString(), "its partitions have their new files, but some of the older files are left", failed);
    }
  }

  /**
   * Returns the keys of everything in the files' partitions. Excludes the new files themselves, and the partitions'
   * markers.
   */
  private List<String> older(Path output, List<PendingFile> files) throws IOException {
    Set<String> fresh = new HashSet<>();
    Map<String, CompletableFuture<Listing>> partitions = new LinkedHashMap<>();
    for (PendingFile file : files) {
      fresh.add(file.key());
      String partition = file.key().substring(0, Math.max(0, file.key().lastIndexOf('/')));
      if (Keys.isInside(partition, keys.of(output)) && !partitions.containsKey(partition)) {
        tally.list();
        partitions.put(partition, bucket.listWithDelimiterAsync(Keys.inside(partition), ListOptions.NONE));
      }
    }
    List<String> older = new ArrayList<>();
    for (Map.Entry<String, CompletableFuture<Listing>> partition : partitions.entrySet()) {
      Listing listing = Failures.await(output, partition.getValue());
      listing.objects().forEach(object -> older.add(object.key()));
      for (String below : listing.prefixes()) {
        tally.list();
        try (Stream<ObjectMeta> objects = bucket.list(below)) {
          objects.forEach(object -> older.add(object.key()));
        } catch (UncheckedIOException failed) {
          throw Failures.of(output, failed.getCause());
        }
      }
    }
    older.removeIf(key -> fresh.contains(key)
        || (Keys.isMarker(key) && partitions.containsKey(key.substring(0, key.length() - 1))));
    return older;
  }

  /** Completes the uploads of known files, all at once. */
  void complete(Path job, List<PendingFile> files) throws IOException {
    List<CompletableFuture<Written>> completed = new ArrayList<>();
    for (PendingFile file : files) {
      completed.add(bucket.multipart(file.key(), file.upload()).completeAsync(file.parts()));
    }
    IOException failure = null;
    List<String> done = new ArrayList<>();
    boolean isInterrupted = false;
    for (int i = 0; i < files.size(); i++) {
      isInterrupted |= waitOut(completed.get(i));
      try {
        Failures.await(keys.path(files.get(i).key()).orElse(job), completed.get(i));
        done.add(files.get(i).key());
      } catch (IOException failed) {
        failure = failure == null ? failed : failure;
      }
    }
    isInterrupted |= Thread.interrupted();
    if (isInterrupted && failure == null) {
      failure = new InterruptedIOException("the commit of " + job + " was interrupted");
    }
    try {
      if (failure != null) {
        takeBack(job, done, failure);
        throw failure;
      }
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * Waits until a completion has ended, in success or failure. The caller then knows which files to remove.
   *
   * @return whether the thread was interrupted meanwhile; its flag is cleared
   */
  private static boolean waitOut(CompletableFuture<?> completion) {
    boolean isInterrupted = false;
    while (true) {
      try {
        completion.get();
        return isInterrupted;
      } catch (InterruptedException interrupted) {
        isInterrupted = true;
      } catch (ExecutionException | CancellationException failed) {
        return isInterrupted;
      }
    }
  }

  private void takeBack(Path job, List<String> done, IOException why) {
    try {
      deletion.deleteAll(job, done.iterator());
    } catch (IOException failed) {
      why.addSuppressed(failed);
    }
  }

  /** Aborts the uploads of all committed tasks. */
  void abortJob(Path job) throws IOException {
    abort(job, committed(job));
  }

  /** Removes a job's own directory, and aborts the remaining uploads to its output if requested. */
  void cleanUp(Path output, Path job, boolean abortsUploads) throws IOException {
    List<String> own = new ArrayList<>();
    try (Stream<ObjectMeta> inside = bucket.list(Keys.inside(keys.of(job)))) {
      inside.forEach(object -> own.add(object.key()));
    } catch (UncheckedIOException failed) {
      throw Failures.of(job, failed.getCause());
    }
    if (!own.isEmpty()) {
      deletion.deleteAll(job, own.iterator());
    }
    if (abortsUploads) {
      List<CompletableFuture<Void>> aborts = new ArrayList<>();
      for (MultipartUpload upload : left(output)) {
        aborts.add(upload.abortAsync());
      }
      settle(output, aborts);
    }
  }

  private List<MultipartUpload> left(Path output) {
    try {
      return bucket.multipartUploads(Keys.inside(keys.of(output)));
    } catch (IOException unlisted) {
      if (unlisted instanceof LanewayException failed && failed.kind() == ErrorKind.UNSUPPORTED) {
        // Azure has no list of uploads. It removes their blocks after a week.
        return List.of();
      }
      // The credentials may permit writing but not listing uploads. The job's result is right nevertheless.
      LOG.warn("no permission to list uploads: unfinished uploads below {} are not aborted", output, unlisted);
      return List.of();
    }
  }

  /** Aborts a file that an attempt has written. */
  void abort(Path path, PendingFile file) throws IOException {
    abort(path, List.of(file));
  }

  private void abort(Path attempt, List<PendingFile> files) throws IOException {
    List<CompletableFuture<Void>> aborts = new ArrayList<>();
    for (PendingFile file : files) {
      aborts.add(bucket.multipart(file.key(), file.upload()).abortAsync());
    }
    settle(attempt, aborts);
  }

  private static void settle(Path path, List<CompletableFuture<Void>> aborts) throws IOException {
    for (CompletableFuture<Void> abort : aborts) {
      try {
        Failures.await(path, abort);
      } catch (IOException failed) {
        if (!Failures.isNotFound(failed)) {
          throw failed;
        }
      }
    }
  }

  /** Reads the records of all committed tasks of a job, all at once. */
  List<PendingFile> committed(Path job) throws IOException {
    List<CompletableFuture<Download>> lists = new ArrayList<>();
    try (Stream<ObjectMeta> tasks = bucket.list(Keys.inside(keys.of(job)))) {
      tasks.filter(object -> !Keys.isMarker(object.key()))
          .forEach(object -> lists.add(bucket.getAsync(object.key(), GetOptions.NONE)));
    } catch (UncheckedIOException failed) {
      throw Failures.of(job, failed.getCause());
    }
    List<PendingFile> files = new ArrayList<>();
    for (CompletableFuture<Download> list : lists) {
      files.addAll(PendingFile.read(Failures.await(job, list).bytes()));
    }
    return files;
  }
}
