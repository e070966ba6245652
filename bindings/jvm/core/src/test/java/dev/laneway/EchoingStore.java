package dev.laneway;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A store that refuses all requests and repeats their headers in its answers, as S3 does if a signature doesn't match.
 */
public final class EchoingStore implements AutoCloseable {
  private final HttpServer server;
  private final AtomicInteger asked = new AtomicInteger();

  public EchoingStore() {
    try {
      server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
    server.setExecutor(Executors.newCachedThreadPool(work -> {
      Thread thread = new Thread(work);
      thread.setDaemon(true);
      return thread;
    }));
    server.createContext("/", exchange -> {
      asked.incrementAndGet();
      exchange.getRequestBody().readAllBytes();
      StringBuilder shown = new StringBuilder();
      exchange.getRequestHeaders().forEach((name, values) -> shown.append(name).append(": ").append(values).append(' '));
      shown.append(exchange.getRequestURI());
      String body = "<Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match.</Message><CanonicalRequest>" + shown
          + "</CanonicalRequest><StringToSign>" + shown + "</StringToSign></Error>";
      byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
      boolean isHead = exchange.getRequestMethod().equals("HEAD");
      exchange.sendResponseHeaders(403, isHead ? -1 : bytes.length);
      if (!isHead) {
        exchange.getResponseBody().write(bytes);
      }
      exchange.close();
    });
    server.start();
  }

  public String url() {
    return "http://127.0.0.1:" + server.getAddress().getPort();
  }

  /** Returns the number of requests so far. */
  public int asked() {
    return asked.get();
  }

  @Override
  public void close() {
    server.stop(0);
  }
}
