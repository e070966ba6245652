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

  /** A read of a key with this ending gets only the first KiB, and then stalls forever. */
  static final String HELD = "held";

  private static final String URL = start();
  private static final Laneway LANEWAY = client();

  private final String scheme;

  Serving(String scheme) {
    this.scheme = scheme;
  }

  /** Returns settings that reach the server. */
  static Laneway.Builder settings() {
    return settingsWithoutKeys().accessKey("laneway", "lanewaysecret");
  }

  static Laneway.Builder settingsWithoutKeys() {
    return Laneway.builder().s3Endpoint(URL).gcsEndpoint(URL).region("us-east-1");
  }

  /** Returns the server's URL. */
  static String url() {
    return URL;
  }

  /** Returns the client that all tests share. */
  static Laneway laneway() {
    return LANEWAY;
  }

  /** Returns the URL of a folder for one test. */
  String folder() {
    return scheme + "://lake/" + UUID.randomUUID() + "/";
  }

  Bucket bucket() throws LanewayException {
    return bucket(LANEWAY);
  }

  Bucket bucket(Laneway laneway) throws LanewayException {
    return laneway.bucket(folder());
  }

  /** Returns bytes that can't be compressed. They are the same each time. */
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

  /** Returns the bytes of a buffer before its position. */
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

  /** Waits until another thread or the engine makes a condition true. */
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
    // The tests must not depend on settings of a developer's machine.
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
