package dev.laneway;

import java.util.Map;

/**
 * The engine's counts since it started. They include all clients of the process that have the same network settings.
 *
 * @param requests Requests that were sent, counting every attempt.
 * @param retries Attempts of each request after its first one.
 * @param hedges Second attempts that were sent because the first one was slow.
 * @param throttles Answers by which a store asked for fewer requests, such as 429 and 503.
 * @param connections Connections that were opened.
 * @param connectionsOpen Connections that are open now.
 * @param bytesReceived Body bytes received.
 * @param bytesSent Body bytes sent.
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
