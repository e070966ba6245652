package dev.laneway;

import static dev.laneway.Serving.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Plans are made, run by several threads, and compared with the destination. */
@Timeout(60)
class PlansTest {
  private static final int ROWS = 30;
  private static final PlanOptions NONE = PlanOptions.NONE;

  @TempDir Path folder;

  private final Laneway laneway = Serving.laneway();

  private String filled(Serving dialect) throws Exception {
    String place = dialect.folder();
    for (int number = 0; number < ROWS; number++) {
      String key = String.format("from/%02d", number);
      laneway.bucket(place).put(key, ByteBuffer.wrap(text("x".repeat(number))), PutOptions.NONE);
    }
    return place;
  }

  private static List<Plan.Result> runAll(Plan plan, PlanOptions options) throws IOException {
    List<Plan.Result> results = new ArrayList<>();
    for (Plan.Result result = plan.runNext(options); result != null; result = plan.runNext(options)) {
      results.add(result);
    }
    return results;
  }

  private static long done(List<Plan.Result> results) {
    return results.stream().mapToLong(Plan.Result::done).sum();
  }

  @ParameterizedTest
  @EnumSource
  void threads_share_a_plan_and_do_nothing_twice(Serving dialect) throws Exception {
    String place = filled(dialect);
    Plan.Totals totals = laneway.planCopy(place + "from", place + "to", place + "plan", NONE.partRows(7));
    assertEquals(List.of(30L, 435L, 0L, 5L), List.of(totals.objects(), totals.bytes(), totals.removed(), totals.parts()));
    try (Plan plan = laneway.openPlan(place + "plan")) {
      assertEquals(List.of("copy", place + "from/", place + "to/"), List.of(plan.kind(), plan.source(), plan.destination()));
      assertEquals(5, plan.status().count(Plan.State.WAITING));
      List<Plan.Row> missing = new ArrayList<>();
      assertEquals(ROWS, plan.verify(NONE.onRow(missing::add)).missing());
      assertEquals(ROWS, missing.stream().filter(row -> row.kind().equals("missing")).count());
      List<Plan.Result> results = Collections.synchronizedList(new ArrayList<>());
      ExecutorService threads = Executors.newFixedThreadPool(2);
      List<Future<?>> runners = new ArrayList<>();
      for (int runner = 0; runner < 2; runner++) {
        runners.add(threads.submit(() -> results.addAll(runAll(plan, NONE))));
      }
      for (Future<?> runner : runners) {
        runner.get();
      }
      threads.shutdown();
      assertEquals(List.of(0, 1, 2, 3, 4), results.stream().map(Plan.Result::number).sorted().toList());
      assertEquals(ROWS, done(results));
      Plan.Status status = plan.status();
      assertEquals(List.of(5L, 30L, 0L), List.of(status.count(Plan.State.ENDED), status.done(), status.left()));
      assertTrue(plan.verify(NONE).isClean());
      assertEquals(7, plan.verifyPart(3, NONE).same());
      assertEquals(results.stream().filter(result -> result.number() == 3).findFirst().orElseThrow(), plan.runPart(3, NONE));
      assertNull(plan.retry(place + "again"));
      assertEquals(ROWS, plan.report(folder.resolve("report.csv").toString()));
      assertEquals(ROWS, Files.readAllLines(folder.resolve("report.csv")).size());
    }
  }

  @ParameterizedTest
  @EnumSource
  void failed_rows_are_reported_and_planned_again(Serving dialect) throws Exception {
    String place = filled(dialect);
    laneway.planCopy(place + "from", place + "to", place + "plan", NONE);
    laneway.bucket(place).deleteAll(List.of("from/05", "from/06"));
    try (Plan plan = laneway.openPlan(place + "plan")) {
      List<Plan.Row> failed = new ArrayList<>();
      Plan.Result result = plan.runNext(NONE.onRow(failed::add));
      assertEquals(List.of(28L, 2L, 2L), List.of(result.done(), result.failed(), plan.status().failed()));
      assertEquals(List.of(place + "from/05", place + "from/06"), failed.stream().map(Plan.Row::url).sorted().toList());
      laneway.bucket(place).put("from/05", ByteBuffer.wrap(text("another version")), PutOptions.NONE);
      assertEquals(1, plan.retry(place + "again").objects());
    }
    try (Plan again = laneway.openPlan(place + "again")) {
      assertEquals(place + "plan", again.retryOf());
      assertEquals(1, done(runAll(again, NONE)));
    }
    assertEquals(15, laneway.bucket(place).head("to/05").size());
  }

  @Test
  void an_interrupted_runner_gives_its_part_up() throws Exception {
    String s3 = filled(Serving.S3);
    String gs = Serving.GCS.folder();
    laneway.planCopy(s3 + "from", gs + "to", gs + "plan", NONE);
    try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Laneway held = Serving.settings().s3Endpoint("http://127.0.0.1:" + silent.getLocalPort()).build();
        Plan plan = held.openPlan(gs + "plan");
        Plan other = laneway.openPlan(gs + "plan")) {
      CompletableFuture<Throwable> ended = new CompletableFuture<>();
      Thread runner =
          new Thread(
              () -> {
                Throwable failure =
                    assertThrows(InterruptedIOException.class, () -> plan.runNext(NONE.lease(Duration.ofHours(1))));
                ended.complete(Thread.currentThread().isInterrupted() ? failure : null);
              });
      runner.start();
      // The runner has its part once it connects.
      Socket connected = silent.accept();
      assertEquals(List.of(Plan.State.RUNNING), other.status().states());
      runner.interrupt();
      assertEquals("the call was interrupted", ended.get().getMessage());
      connected.close();
      assertEquals(List.of(Plan.State.WAITING), other.status().states());
      assertEquals(ROWS, other.runPart(0, NONE).done());
    }
  }

  @Test
  void a_sync_removes_once_every_copy_has_succeeded() throws Exception {
    String place = filled(Serving.S3);
    laneway.bucket(place).put("to/extra", ByteBuffer.wrap(text("x")), PutOptions.NONE);
    PlanOptions options = NONE.delete().maxDelete(1).filter("+ 0*").filter("+ extra").filter("- *");
    String plans = folder.resolve("plan").toString();
    Plan.Totals dry = laneway.planSync(place + "from", place + "to", plans, options.dryRun());
    assertEquals(dry, laneway.planSync(place + "from", place + "to", plans, options));
    try (Plan plan = laneway.openPlan(plans)) {
      assertEquals(List.of("copy", "remove"), plan.parts().stream().map(Plan.Part::action).toList());
      assertThrows(LanewayException.class, () -> plan.runPart(1, NONE));
      assertEquals(11, done(runAll(plan, NONE.singleRunner())));
    }
    laneway.planCopy(place + "from", place + "copy", plans + "-4", NONE.bandwidthLimit(10_000_000, 1));
    try (Plan plan = laneway.openPlan(plans + "-4")) {
      assertEquals(ROWS, done(runAll(plan, NONE)));
    }
    laneway.planVerify(place + "from", place + "to", plans + "-2", NONE);
    try (Plan plan = laneway.openPlan(plans + "-2")) {
      assertEquals(ROWS - 10, runAll(plan, NONE).get(0).failures().get("missing"));
    }
    laneway.planRemove(place + "to", plans + "-3", NONE.through("04"));
    laneway.planRemove(place + "to", plans + "-3", NONE.after("04"));
    try (Plan plan = laneway.openPlan(plans + "-3")) {
      assertEquals(10, done(runAll(plan, NONE)));
    }
  }

  @Test
  void mistakes_are_named_as_javas_callers_write_them() throws Exception {
    String place = filled(Serving.S3);
    String plans = folder.resolve("plan").toString();
    LanewayException refused =
        assertThrows(LanewayException.class, () -> laneway.planRemove(place, plans, NONE.noClobber()));
    assertEquals("PlanOptions.noClobber: the action remove of plans has no such option", refused.getMessage());
    refused = assertThrows(LanewayException.class, () -> laneway.planRemove(place, plans, NONE.filter("*.tmp")));
    assertTrue(refused.getMessage().startsWith("PlanOptions.filter: the rule \"*.tmp\" must begin"), refused::getMessage);
    refused = assertThrows(LanewayException.class, () -> laneway.openPlan(plans));
    assertEquals(ErrorKind.REFUSED, refused.kind());
    assertThrows(NullPointerException.class, () -> laneway.planCopy(null, place, plans, NONE));
    assertThrows(NullPointerException.class, () -> laneway.openPlan(null));
    laneway.planCopy(place + "from", place + "to", plans, NONE);
    try (Plan plan = laneway.openPlan(plans)) {
      assertEquals(ErrorKind.USAGE, assertThrows(LanewayException.class, () -> plan.runPart(1, NONE)).kind());
      IllegalStateException thrown = new IllegalStateException("a listener that throws");
      PlanOptions throwing = NONE.onRow(row -> { throw thrown; });
      assertEquals(thrown, assertThrows(IllegalStateException.class, () -> plan.verify(throwing)));
      assertThrows(LanewayException.class, () -> plan.report(folder.resolve("nowhere/report.csv").toString()));
    }
  }
}
