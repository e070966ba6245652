/**
 * Reads, writes and moves objects of Google Cloud Storage and S3, as fast as the network allows, with nothing to tune.
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
 * <p>One engine serves the process: its threads do the work, its budgets bound memory and connections, whatever number of {@link
 * dev.laneway.Laneway}s and class loaders there are. Every verb blocks the thread that calls it, or, as {@code ...Async}, gives a
 * {@link java.util.concurrent.CompletableFuture}. An interrupt ends a blocking call with an {@link java.io.InterruptedIOException}, and
 * cancelling a future ends its call. Once a call has returned or thrown, or its future was cancelled, the engine uses none of the
 * buffers that were handed to it.
 *
 * <p>What the engine has to say goes to slf4j's logger {@code dev.laneway}; failures are {@link dev.laneway.LanewayException}s of a
 * {@link dev.laneway.ErrorKind}. Neither holds a secret.
 */
package dev.laneway;
