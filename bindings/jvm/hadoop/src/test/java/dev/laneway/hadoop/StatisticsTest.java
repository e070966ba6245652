package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.PutOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSupport;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the statistics of a filesystem, and the attributes of its files. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class StatisticsTest {
  private final String scheme;
  private final FileSystem files;
  private final Connection connection;
  private final Path file;

  StatisticsTest(String scheme) throws IOException {
    this.scheme = scheme;
    Configuration conf = EmbeddedStore.broken("lake", "get:1 key=*busy.gs status 429", "get:1 key=*busy.s3a status 503", "get:1 key=*busy.abfss status 503")
        .configuration();
    files = EmbeddedStore.open(scheme + "://lake/", conf);
    connection = Connection.of(Settings.of(URI.create(scheme + "://lake/"), conf));
    String key = "statistics-" + System.nanoTime() + "/file";
    PutOptions options = PutOptions.NONE.contentType("text/plain").cacheControl("no-store").metadata("owner", "me");
    connection.bucket().put(key, ByteBuffer.wrap(new byte[7]), options);
    file = new Path(scheme + "://lake/" + key);
  }

  @AfterEach
  void close() throws IOException {
    connection.close();
    files.close();
  }

  private Map<String, Long> counters() {
    return IOStatisticsSupport.retrieveIOStatistics(files).counters();
  }

  @Test
  void operationsHaveDurationsAlsoWhenTheyFail() throws Exception {
    files.getFileStatus(file);
    assertThrows(FileNotFoundException.class, () -> files.getFileStatus(new Path(file.getParent(), "none")));
    files.openFile(file).build().get().close();
    IOStatistics statistics = IOStatisticsSupport.retrieveIOStatistics(files);
    assertEquals(2, statistics.counters().get("op_get_file_status"));
    assertEquals(1, statistics.counters().get("op_get_file_status.failures"));
    assertEquals(1, statistics.meanStatistics().get("op_get_file_status.mean").getSamples());
    assertEquals(1, statistics.meanStatistics().get("op_openfile.mean").getSamples());
    assertTrue(statistics.maximums().get("op_get_file_status.failures.max") >= 0);
    assertEquals(2, files.getStorageStatistics().getLong("op_get_file_status"));
  }

  @Test
  void theEnginesRetriesAndConnectionsAreCounted() throws IOException {
    Path busy = new Path(file.getParent(), "busy." + scheme);
    files.create(busy).close();
    Map<String, Long> before = Map.copyOf(counters());
    files.open(busy).close();
    Map<String, Long> after = counters();
    assertTrue(after.get(StoreStatisticNames.STORE_IO_REQUEST) >= before.get(StoreStatisticNames.STORE_IO_REQUEST) + 2);
    assertTrue(after.get(StoreStatisticNames.STORE_IO_RETRY) > before.get(StoreStatisticNames.STORE_IO_RETRY));
    assertTrue(after.get(StoreStatisticNames.STORE_IO_THROTTLED) > before.get(StoreStatisticNames.STORE_IO_THROTTLED));
    assertTrue(after.get(Tally.CONNECTIONS_OPENED) > 0);
    assertTrue(IOStatisticsSupport.retrieveIOStatistics(files).gauges().get(Tally.CONNECTIONS_OPEN) > 0);
    files.close();
    assertTrue(counters().get(StoreStatisticNames.STORE_IO_RETRY) > 0, "the counts outlive the filesystem");
  }

  @Test
  void aFilesAttributesAreItsHeadersAndMetadata() throws IOException {
    Map<String, byte[]> attributes = files.getXAttrs(file);
    assertArrayEquals("7".getBytes(), attributes.get("header.Content-Length"));
    assertArrayEquals("text/plain".getBytes(), files.getXAttr(file, "header.Content-Type"));
    assertArrayEquals("me".getBytes(), attributes.get("header.owner"));
    assertNull(files.getXAttr(file, "header.none"));
    assertEquals(Set.of("header.Cache-Control"), files.getXAttrs(file, List.of("header.Cache-Control", "none")).keySet());
    assertEquals(List.copyOf(attributes.keySet()), files.listXAttrs(file));
    assertTrue(attributes.keySet().containsAll(List.of("header.ETag", "header.Last-Modified")), attributes::toString);
    assertEquals(Map.of(), files.getXAttrs(file.getParent()));
    assertThrows(FileNotFoundException.class, () -> files.getXAttrs(new Path(file.getParent(), "none")));
  }
}
