/**
 * Reads, writes and moves objects of Google Cloud Storage and S3, as fast as the network allows, without tuning.
 *
 * <pre>{@code
 * try (Laneway laneway = Laneway.fromEnvironment()) {
 *   Bucket bucket = laneway.bucket("s3://lake/warehouse/");
 *   bucket.put("notes.txt", ByteBuffer.wrap("one line\n".getBytes(UTF_8)), PutOptions.NONE.ifAbsent());
 *   try (ObjectReader table = bucket.open("table.parquet")) {
 *     table.readAt(0, ByteBuffer.allocateDirect(1 << 20));
 *   }
 * }
 * }</pre>
 *
 * <p>One engine serves the process. Its threads do the work, and its budgets bound memory and connections, for any number of
 * {@link dev.laneway.Laneway}s and class loaders. Every verb blocks the thread that calls it. Its {@code ...Async} form returns
 * a {@link java.util.concurrent.CompletableFuture}. An interrupt ends a blocking call with an {@link
 * java.io.InterruptedIOException}, and cancelling a future ends its call. After that, or once a call has returned or thrown, the
 * engine uses none of the buffers that were handed to it.
 *
 * <p>The engine logs to slf4j's logger {@code dev.laneway}. Failures are {@link dev.laneway.LanewayException}s of a {@link
 * dev.laneway.ErrorKind}. Neither contains a secret.
 */
package dev.laneway;
