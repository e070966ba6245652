/**
 * Iceberg's {@code FileIO} over Google Cloud Storage and S3. A catalog names {@link dev.laneway.iceberg.LanewayFileIO}.
 */
package dev.laneway.iceberg;
