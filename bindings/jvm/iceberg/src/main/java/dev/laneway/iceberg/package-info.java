/** Iceberg's {@code FileIO} over Google Cloud Storage and S3. {@link dev.laneway.iceberg.LanewayFileIO} is what a catalog names. */
package dev.laneway.iceberg;
