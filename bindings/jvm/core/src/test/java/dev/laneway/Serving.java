package dev.laneway;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.UUID;
import java.util.function.BooleanSupplier;

/** A store for the tests of this JVM: the program's {@code serve}, reached in both dialects. */
enum Serving {
  S3("s3"),
  GCS("gs");

  /** Reads of keys that end so are answered up to their first KiB, and no further. */
  static final String HELD = "held";

  private static final String URL = start();
  private static final Laneway LANEWAY = client();

  private final String scheme;

  Serving(String scheme) {
    this.scheme = scheme;
  }

  /** Settings that reach the server. */
  static Laneway.Builder settings() {
    return settingsWithoutKeys().accessKey("laneway", "lanewaysecret");
  }

  static Laneway.Builder settingsWithoutKeys() {
    return Laneway.builder().s3Endpoint(URL).gcsEndpoint(URL).region("us-east-1");
  }

  /** The server's URL. */
  static String url() {
    return URL;
  }

  /** What all tests share. */
  static Laneway laneway() {
    return LANEWAY;
  }

  /** A folder of a test's own. */
  String folder() {
    return scheme + "://lake/" + UUID.randomUUID() + "/";
  }

  Bucket bucket() throws LanewayException {
    return bucket(LANEWAY);
  }

  Bucket bucket(Laneway laneway) throws LanewayException {
    return laneway.bucket(folder());
  }

  /** Bytes that compress to nothing less, and are the same each time. */
  static byte[] noise(int length) {
    byte[] bytes = new byte[length];
    new Random(length).nextBytes(bytes);
    return bytes;
  }

  static ByteBuffer direct(byte[] bytes) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length);
    buffer.put(bytes).flip();
    return buffer;
  }

  /** What of a buffer lies before its position. */
  static byte[] written(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.position()];
    buffer.duplicate().flip().get(bytes);
    return bytes;
  }

  static byte[] remaining(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Looks again and again: for what another thread, or the engine, does in its own time. */
  static void until(BooleanSupplier is) throws InterruptedException {
    while (!is.getAsBoolean()) {
      Thread.sleep(1);
    }
  }

  private static Laneway client() {
    try {
      return settings().build();
    } catch (LanewayException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  private static String start() {
    String program = System.getProperty("laneway.program", "laneway");
    ProcessBuilder command =
        new ProcessBuilder(
            program, "serve", "--listen", "127.0.0.1:0", "--bucket", "lake", "--fault", "get key=*" + HELD + " stall@1KiB");
    // What the tests say goes before what a developer's machine says.
    command.environment().keySet().removeIf(name -> name.matches("(AWS|GOOGLE|LANEWAY)_.*|STORAGE_EMULATOR.*"));
    command.redirectError(ProcessBuilder.Redirect.DISCARD);
    try {
      Process process = command.start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
      BufferedReader said =
          new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
      String line = said.readLine();
      if (line == null) {
        throw new IOException(program + " serve has ended");
      }
      return line.substring(line.lastIndexOf(' ') + 1);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
