package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Requests are signed by the role that S3A's keys name, and go through the proxy that they name. */
class AssumedRoleTest {
  /** STS, a store and a proxy, all of which record the requests that they receive. */
  private final HttpServer server;

  private final List<String> asked = new CopyOnWriteArrayList<>();
  private final Configuration conf = new Configuration();
  private final String host;

  AssumedRoleTest() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", this::answer);
    server.start();
    host = "127.0.0.1:" + server.getAddress().getPort();
    conf.set("fs.s3a.impl", LanewayFileSystem.class.getName());
    conf.set("fs.s3a.endpoint", "http://" + host);
    conf.set("fs.s3a.endpoint.region", "us-east-1");
    conf.set("fs.s3a.path.style.access", "true");
    conf.set("fs.s3a.access.key", "own");
    conf.set("fs.s3a.secret.key", "secret");
  }

  @AfterEach
  void stop() {
    server.stop(0);
  }

  private void answer(HttpExchange exchange) throws IOException {
    String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    String signer = String.valueOf(exchange.getRequestHeaders().getFirst("Authorization"));
    asked.add(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " " + signer + " " + body);
    String keys = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>assumed</AccessKeyId>"
        + "<SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>"
        + "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
    boolean isSts = exchange.getRequestMethod().equals("POST");
    byte[] text = isSts ? keys.getBytes(StandardCharsets.UTF_8) : new byte[0];
    exchange.getResponseHeaders().set("ETag", "\"1\"");
    exchange.getResponseHeaders().set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    if (!isSts) {
      exchange.getResponseHeaders().set("Content-Length", "4");
    }
    exchange.sendResponseHeaders(200, text.length == 0 ? -1 : text.length);
    exchange.getResponseBody().write(text);
    exchange.close();
  }

  @Test
  void theRoleSignsRequestsAndTheKeysOnlyAskForIt() throws IOException {
    conf.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider");
    conf.set("fs.s3a.assumed.role.arn", "arn:aws:iam::1:role/reader");
    conf.set("fs.s3a.assumed.role.sts.endpoint", "http://" + host);
    conf.set("fs.s3a.assumed.role.policy", "{\"Version\":\"2012-10-17\"}");
    try (FileSystem files = EmbeddedStore.open("s3a://lake/", conf)) {
      assertTrue(files.getFileStatus(new Path("/file")).isFile());
    }
    assertTrue(asked.get(0).contains("Credential=own/") && asked.get(0).contains("RoleArn=arn"), asked::toString);
    assertTrue(asked.get(0).contains("Policy=") && asked.get(0).contains("DurationSeconds=1800"), asked::toString);
    assertTrue(asked.stream().skip(1).allMatch(request -> request.contains("Credential=assumed/")), asked::toString);
  }

  @Test
  void requestsGoThroughTheProxy() throws IOException {
    conf.set("fs.s3a.endpoint", "http://store.invalid");
    conf.set("fs.s3a.proxy.host", "127.0.0.1");
    conf.set("fs.s3a.proxy.port", host.substring(host.indexOf(':') + 1));
    try (FileSystem files = EmbeddedStore.open("s3a://lake/", conf)) {
      assertTrue(files.getFileStatus(new Path("/file")).isFile());
    }
    assertEquals("HEAD http://store.invalid/lake/file", asked.get(0).substring(0, asked.get(0).indexOf(" AWS4")));
  }
}
