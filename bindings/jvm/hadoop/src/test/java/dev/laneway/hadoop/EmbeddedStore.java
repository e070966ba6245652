package dev.laneway.hadoop;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** The program's `serve`, in a separate process for each test run. Tests reach it in all dialects. */
public final class EmbeddedStore {
  /** The account of Microsoft's emulators and its key, which the store has by default. */
  public static final String ACCOUNT = "devstoreaccount1";

  public static final String ACCOUNT_KEY =
      "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

  private static final Map<List<String>, EmbeddedStore> RUNNING = new ConcurrentHashMap<>();

  private final String url;

  private EmbeddedStore(List<String> options) {
    String program = System.getProperty("laneway.program", "laneway");
    List<String> command = new ArrayList<>(List.of(program, "serve", "--listen", "127.0.0.1:0"));
    command.addAll(options);
    try {
      Process process = new ProcessBuilder(command).redirectError(new File("/dev/null")).start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
      BufferedReader said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
      String line = said.readLine();
      if (line == null) {
        throw new IOException("it said nothing: " + String.join(" ", command));
      }
      url = line.substring(line.lastIndexOf(' ') + 1);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }

  /** Returns a store with a bucket of this name. */
  public static EmbeddedStore with(String bucket) {
    return RUNNING.computeIfAbsent(List.of("--bucket", bucket), EmbeddedStore::new);
  }

  /** Returns a store with injected faults. CONTRIBUTING.md describes the rules. */
  public static EmbeddedStore broken(String bucket, String... rules) {
    List<String> options = new ArrayList<>(List.of("--bucket", bucket));
    for (String rule : rules) {
      options.addAll(List.of("--fault", rule));
    }
    return RUNNING.computeIfAbsent(options, EmbeddedStore::new);
  }

  /** Returns the store's URL. */
  public String url() {
    return url;
  }

  /** Returns a configuration whose common keys make all schemes reach this store. */
  public Configuration configuration() {
    Configuration conf = new Configuration();
    configure(conf);
    return conf;
  }

  /** Sets the keys that make all schemes reach this store. */
  public void configure(Configuration conf) {
    configure(conf, url);
  }

  /** Does the same for a store that was started elsewhere. */
  public static void configure(Configuration conf, String url) {
    for (String scheme : List.of("gs", "s3a", "s3", "abfs", "abfss", "wasbs", "az")) {
      conf.set("fs." + scheme + ".impl", LanewayFileSystem.class.getName());
      conf.set("fs.AbstractFileSystem." + scheme + ".impl", LanewayFs.class.getName());
    }
    conf.set("fs.azure.abfs.endpoint", url + "/" + ACCOUNT);
    conf.set("fs.azure.account.key", ACCOUNT_KEY);
    conf.set("fs.gs.storage.root.url", url + "/");
    conf.set("fs.gs.auth.type", "UNAUTHENTICATED");
    conf.set("fs.s3a.endpoint", url);
    conf.set("fs.s3a.endpoint.region", "us-east-1");
    conf.set("fs.s3a.path.style.access", "true");
    conf.set("fs.s3a.access.key", "laneway");
    conf.set("fs.s3a.secret.key", "lanewaysecret");
  }

  /** Returns a filesystem of a bucket, which no other caller shares. */
  public static FileSystem open(String url, Configuration conf) throws IOException {
    return FileSystem.newInstance(URI.create(url), conf);
  }
}
