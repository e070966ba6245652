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
 * <p>One engine serves the whole process, with any number of {@link dev.laneway.Laneway} clients and class loaders. Its threads
 * do the work, and its limits apply to the memory and the connections of all clients together. Each operation blocks the thread
 * that calls it. Its {@code ...Async} form returns a {@link java.util.concurrent.CompletableFuture} instead. If the thread is
 * interrupted, a blocking call ends with an {@link java.io.InterruptedIOException}. Cancelling a future ends its call. Once a
 * call has ended in any of these ways, the engine no longer uses the buffers that were passed to it.
 *
 * <p>The engine logs to slf4j's logger {@code dev.laneway}. Failures are {@link dev.laneway.LanewayException}s with an {@link
 * dev.laneway.ErrorKind}. Neither log records nor failures contain secrets.
 */
package dev.laneway;
