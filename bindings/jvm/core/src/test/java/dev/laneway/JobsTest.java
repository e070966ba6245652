package dev.laneway;

import static dev.laneway.Serving.noise;
import static dev.laneway.Serving.text;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Trees are copied, synced and removed. */
@Timeout(60)
class JobsTest {
  @TempDir Path folder;

  private final Laneway laneway = Serving.laneway();

  private void tree() throws Exception {
    Files.createDirectories(folder.resolve("tree/below"));
    for (int number = 0; number < 20; number++) {
      Files.write(folder.resolve("tree/below/" + number), noise(1000 + number));
    }
    Files.write(folder.resolve("tree/large"), noise(20_000_000));
  }

  @ParameterizedTest
  @EnumSource
  void a_tree_goes_up_and_comes_back(Serving dialect) throws Exception {
    tree();
    String place = dialect.folder();
    AtomicReference<Progress> last = new AtomicReference<>();
    JobOptions options = JobOptions.NONE.recursive().contents().onProgress(last::set);
    try (Job job = laneway.copy(List.of(folder.resolve("tree").toString()), place, options)) {
      Summary summary = job.join().orThrow();
      assertEquals(21, summary.files());
      assertTrue(summary.bytes() > 20_000_000);
      assertTrue(summary.requests() >= 21);
      assertEquals(summary.bytes(), last.get().bytesDone());
      assertEquals(21, last.get().itemsDone());
    }
    JobOptions down = JobOptions.NONE.recursive().contents().filter("- large");
    try (Job job = laneway.copy(List.of(place), folder.resolve("back").toString() + "/", down)) {
      assertEquals(20, job.summary().get(30, TimeUnit.SECONDS).files());
    }
    assertArrayEquals(noise(1007), Files.readAllBytes(folder.resolve("back/below/7")));
    Files.delete(folder.resolve("tree/below/3"));
    try (Job job = laneway.sync(folder.resolve("tree").toString(), place, JobOptions.NONE.delete().dryRun())) {
      assertEquals(1, job.join().orThrow().removed());
    }
    try (Job job = laneway.remove(List.of(place), JobOptions.NONE.recursive())) {
      assertEquals(21, job.join().orThrow().files());
    }
    assertTrue(laneway.bucket(place).listWithDelimiter("").prefixes().isEmpty());
  }

  @ParameterizedTest
  @EnumSource
  void what_fails_stands_in_the_summary(Serving dialect) throws Exception {
    String place = dialect.folder();
    laneway.bucket(place).put("there", ByteBuffer.wrap(text("1")), PutOptions.NONE);
    List<String> sources = List.of(place + "there", place + "nothing", place + "neither");
    try (Job job = laneway.copy(sources, folder + "/", JobOptions.NONE)) {
      Summary summary = job.join();
      assertEquals(1, summary.files());
      assertEquals(2, summary.failed());
      assertEquals(2, summary.failures().size());
      summary.failures().forEach(failure -> assertEquals(ErrorKind.NOT_FOUND, failure.kind(), failure.getMessage()));
      assertEquals(1, assertThrows(LanewayException.class, summary::orThrow).getSuppressed().length);
    }
  }

  @ParameterizedTest
  @EnumSource
  void names_times_and_compression_say_what_is_copied_and_how(Serving dialect) throws Exception {
    Files.createDirectories(folder.resolve("logs"));
    for (String name : List.of("old.log", "new.log", "other")) {
      Files.write(folder.resolve("logs").resolve(name), new byte[100_000]);
    }
    Instant hourAgo = Instant.now().minusSeconds(3600);
    Files.setLastModifiedTime(folder.resolve("logs/old.log"), FileTime.from(hourAgo.minusSeconds(60)));
    Path names = Files.writeString(folder.resolve("names"), "new.log\n");
    String place = dialect.folder();
    Bucket bucket = laneway.bucket(place);
    List<String> logs = List.of(folder.resolve("logs").toString());
    JobOptions tree = JobOptions.NONE.recursive().contents();
    try (Job job = laneway.copy(logs, place, tree.filesFrom(names.toString()).gzip(List.of("log")))) {
      assertEquals(1, job.join().orThrow().files());
    }
    assertEquals("gzip", bucket.head("new.log").contentEncoding());
    try (Job job = laneway.copy(logs, place, tree.newer(hourAgo).filter("- other"))) {
      assertEquals(1, job.join().orThrow().files());
    }
    assertEquals(100_000, bucket.head("new.log").size());
    try (Job job = laneway.copy(logs, place, tree.older(hourAgo))) {
      assertEquals(1, job.join().orThrow().files());
    }
    assertEquals(100_000, bucket.head("old.log").size());
    try (Job job = laneway.sync(logs.get(0), place, JobOptions.NONE.sizeOnly().filter("- *.log"))) {
      assertEquals(1, job.join().orThrow().files());
    }
    assertEquals(100_000, bucket.head("other").size());
  }

  @Test
  void names_from_a_file_take_no_filters_in_copies_and_removals() throws Exception {
    String names = Files.writeString(folder.resolve("names"), "a\n").toString();
    JobOptions both = JobOptions.NONE.recursive().filesFrom(names).newer(Instant.now());
    String place = Serving.S3.folder();
    LanewayException copy =
        assertThrows(LanewayException.class, () -> laneway.copy(List.of(folder.toString()), place, both));
    LanewayException remove = assertThrows(LanewayException.class, () -> laneway.remove(List.of(place), both));
    assertEquals(List.of(ErrorKind.USAGE, ErrorKind.USAGE), List.of(copy.kind(), remove.kind()));
  }

  @Test
  void what_a_job_has_no_use_for_is_refused() {
    LanewayException refused =
        assertThrows(
            LanewayException.class, () -> laneway.remove(List.of("s3://lake/x"), JobOptions.NONE.noClobber()));
    assertEquals(ErrorKind.USAGE, refused.kind());
    assertEquals("JobOptions.noClobber: a remove job has no such option", refused.getMessage());
  }

  @Test
  void a_filter_without_a_sign_is_refused() throws Exception {
    String place = Serving.S3.folder();
    laneway.bucket(place).put("keep.csv", ByteBuffer.wrap(text("1")), PutOptions.NONE);
    for (String rule : List.of("*.tmp", "-*.tmp", " - *.tmp", "")) {
      JobOptions options = JobOptions.NONE.recursive().filter("- a").filter(rule);
      LanewayException refused =
          assertThrows(LanewayException.class, () -> laneway.remove(List.of(place), options));
      assertEquals(ErrorKind.USAGE, refused.kind());
      assertTrue(refused.getMessage().startsWith("JobOptions.filter: the rule \"" + rule + "\" must begin with \"+ \""), refused::getMessage);
    }
    assertEquals(1, laneway.bucket(place).head("keep.csv").size());
    try (Job job = laneway.remove(List.of(place), JobOptions.NONE.recursive().filter("+ *.tmp"))) {
      assertEquals(0, job.join().orThrow().files());
    }
  }

  @Test
  void a_listener_is_called_at_most_ten_times_a_second() throws Exception {
    Files.createDirectories(folder.resolve("many"));
    for (int number = 0; number < 3000; number++) {
      Files.createFile(folder.resolve("many/" + number));
    }
    List<Progress> told = Collections.synchronizedList(new ArrayList<>());
    JobOptions options =
        JobOptions.NONE
            .recursive()
            .onProgress(
                progress -> {
                  told.add(progress);
                  throw new IllegalStateException("a listener that always throws");
                });
    long before = System.nanoTime();
    try (Job job = laneway.copy(List.of(folder.resolve("many").toString()), Serving.S3.folder(), options)) {
      assertEquals(3000, job.join().orThrow().files());
    }
    long tenths = (System.nanoTime() - before) / 100_000_000;
    assertTrue(told.size() <= tenths + 2, () -> told.size() + " calls in " + tenths + " tenths of a second");
    assertEquals(3000, told.get(told.size() - 1).itemsDone());
    String log = Files.readString(Path.of(System.getProperty("org.slf4j.simpleLogger.logFile")));
    assertEquals(1, log.lines().filter(line -> line.contains("a listener that always throws")).count());
  }

  @ParameterizedTest
  @EnumSource
  void a_job_that_is_closed_early_is_cancelled(Serving dialect) throws Exception {
    String place = dialect.folder();
    laneway.bucket(place).put(Serving.HELD, ByteBuffer.wrap(noise(100_000)), PutOptions.NONE);
    Job job = laneway.copy(List.of(place + Serving.HELD), folder + "/", JobOptions.NONE);
    job.close();
    assertTrue(job.join().isInterrupted());
    assertEquals(0, job.join().files());
    assertThrows(LanewayException.class, () -> job.join().orThrow());
  }
}
