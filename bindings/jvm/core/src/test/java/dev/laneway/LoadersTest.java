package dev.laneway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Several class loaders load the classes, and share one native library with one engine. */
@Timeout(60)
class LoadersTest {
  /**
   * Returns a loader with its own copy of the classes, like the loaders of application servers and of Spark's jobs. The
   * parent loads all other classes.
   */
  private static URLClassLoader another() {
    URL[] classes = {Laneway.class.getProtectionDomain().getCodeSource().getLocation()};
    return new URLClassLoader(classes, Laneway.class.getClassLoader()) {
      @Override
      protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
          if (!name.startsWith("dev.laneway.")) {
            return super.loadClass(name, resolve);
          }
          Class<?> loaded = findLoadedClass(name);
          return loaded == null ? findClass(name) : loaded;
        }
      }
    };
  }

  /**
   * Writes an object with a client of another class loader, and returns the number of requests that this client counts.
   */
  private static long requestsAfterUse(ClassLoader loader) throws Exception {
    Class<?> laneway = loader.loadClass("dev.laneway.Laneway");
    assertNotSame(Laneway.class, laneway);
    Object builder = laneway.getMethod("builder").invoke(null);
    builder.getClass().getMethod("s3Endpoint", String.class).invoke(builder, Serving.url());
    builder.getClass().getMethod("region", String.class).invoke(builder, "us-east-1");
    builder.getClass().getMethod("accessKey", String.class, String.class).invoke(builder, "laneway", "lanewaysecret");
    try (AutoCloseable client = (AutoCloseable) builder.getClass().getMethod("build").invoke(builder)) {
      Object bucket = laneway.getMethod("bucket", String.class).invoke(client, Serving.S3.folder());
      Class<?> options = loader.loadClass("dev.laneway.PutOptions");
      Method put = bucket.getClass().getMethod("put", String.class, ByteBuffer.class, options);
      Object written = put.invoke(bucket, "k", Serving.direct(Serving.noise(1000)), options.getField("NONE").get(null));
      assertEquals(1000L, written.getClass().getMethod("size").invoke(written));
      Object counters = laneway.getMethod("counters").invoke(client);
      return (long) counters.getClass().getMethod("requests").invoke(counters);
    }
  }

  @Test
  void all_class_loaders_share_one_engine() throws Exception {
    long before = Serving.laneway().counters().requests();
    try (URLClassLoader first = another();
        URLClassLoader second = another()) {
      assertEquals(before + 1, requestsAfterUse(first));
      assertEquals(before + 2, requestsAfterUse(second));
    }
    assertEquals(before + 2, Serving.laneway().counters().requests());
  }

  @Test
  void a_class_loader_that_is_done_can_be_collected_while_others_go_on() throws Exception {
    WeakReference<ClassLoader> gone = used();
    Serving.until(
        () -> {
          System.gc();
          return gone.get() == null;
        });
    Serving.S3.bucket().put("k", ByteBuffer.allocate(1), PutOptions.NONE);
  }

  private static WeakReference<ClassLoader> used() throws Exception {
    try (URLClassLoader loader = another()) {
      requestsAfterUse(loader);
      return new WeakReference<>(loader);
    }
  }

  @Test
  void the_library_is_unpacked_once_and_for_its_owner() throws Exception {
    Path folder = Path.of(System.getProperty("dev.laneway.native.folder"));
    try (Stream<Path> unpacked = Files.walk(folder)) {
      List<Path> files = unpacked.filter(Files::isRegularFile).toList();
      assertEquals(1, files.size(), files.toString());
    }
    String permissions = Files.getPosixFilePermissions(folder).toString();
    assertTrue(Arrays.asList("GROUP_WRITE", "OTHERS_WRITE").stream().noneMatch(permissions::contains), permissions);
  }
}
