package dev.laneway.faults;

import dev.laneway.Laneway;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The program's {@code serve} with injected faults. */
final class FaultyStore implements AutoCloseable {
  private static final Pattern SAID = Pattern.compile("laneway serve: listening on (\\S+)(?: \\(CA: (.*)\\))?");

  private final Process process;
  private final String url;
  private final String ca;

  FaultyStore(boolean isTls, List<String> faults) throws IOException {
    List<String> line =
        new ArrayList<>(List.of(System.getProperty("laneway.program", "laneway"), "serve", "--listen", "127.0.0.1:0", "--bucket", "lake"));
    if (isTls) {
      line.add("--tls");
    }
    for (String fault : faults) {
      line.addAll(List.of("--fault", fault));
    }
    ProcessBuilder command = new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.DISCARD);
    command.environment().keySet().removeIf(name -> name.matches("(AWS|GOOGLE|LANEWAY)_.*|STORAGE_EMULATOR.*"));
    process = command.start();
    String first = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
    Matcher said = SAID.matcher(String.valueOf(first));
    if (!said.matches()) {
      throw new IOException("serve said " + first);
    }
    url = said.group(1);
    ca = said.group(2);
  }

  /** Returns client settings that reach this store. */
  Laneway.Builder settings() {
    Laneway.Builder settings = Laneway.builder().s3Endpoint(url).gcsEndpoint(url).region("us-east-1").anonymous(true);
    return ca == null ? settings : settings.caFile(ca);
  }

  @Override
  public void close() {
    process.destroy();
    process.onExit().join();
  }
}
