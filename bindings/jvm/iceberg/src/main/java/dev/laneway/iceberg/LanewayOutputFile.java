package dev.laneway.iceberg;

import dev.laneway.Bucket;
import dev.laneway.PutOptions;
import java.io.IOException;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/** A file of a table that can be written. */
final class LanewayOutputFile implements OutputFile {
  private final Location location;
  private final Bucket bucket;
  private final PutOptions described;
  private final FileMetrics metrics;

  LanewayOutputFile(Location location, Bucket bucket, PutOptions described, FileMetrics metrics) {
    this.location = location;
    this.bucket = bucket;
    this.described = described;
    this.metrics = metrics;
  }

  /**
   * Creates a file that must not exist yet. The store itself enforces that when the stream is closed, so only one of
   * several writers succeeds. No request checks this before.
   *
   * @throws AlreadyExistsException when the stream is closed, if the file exists
   */
  @Override
  public PositionOutputStream create() {
    return stream(described.ifAbsent());
  }

  @Override
  public PositionOutputStream createOrOverwrite() {
    return stream(described);
  }

  @Override
  public String location() {
    return location.text();
  }

  @Override
  public InputFile toInputFile() {
    return new LanewayInputFile(location, bucket, metrics, -1);
  }

  @Override
  public String toString() {
    return location.text();
  }

  private PositionOutputStream stream(PutOptions options) {
    try {
      return new LanewayOutputStream(location.text(), bucket.writer(location.key(), options), metrics);
    } catch (IOException failed) {
      throw Failures.of(location.text(), failed);
    }
  }
}
