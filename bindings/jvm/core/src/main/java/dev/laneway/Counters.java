package dev.laneway;

import java.util.Map;

/**
 * Counts of the process's engine so far.
 *
 * @param requests attempts that were sent
 * @param retries attempts after the first
 * @param hedges second requests beside a slow first one
 * @param throttles answers that asked to slow down
 * @param connections connections that were opened
 * @param connectionsOpen connections that are open now
 * @param bytesReceived body bytes received
 * @param bytesSent body bytes sent
 */
public record Counters(
    long requests,
    long retries,
    long hedges,
    long throttles,
    long connections,
    long connectionsOpen,
    long bytesReceived,
    long bytesSent) {
  static Counters read(Unpacked from) {
    Map<String, Long> counts = from.numbers();
    return new Counters(
        counts.get("requests"),
        counts.get("retries"),
        counts.get("hedges"),
        counts.get("throttles"),
        counts.get("connections"),
        counts.get("connections_open"),
        counts.get("bytes_received"),
        counts.get("bytes_sent"));
  }
}
