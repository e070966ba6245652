package dev.laneway.hadoop;

import java.io.IOException;
import java.util.function.Supplier;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.MultipartUploaderBuilderImpl;

/** Makes {@link Uploads}. Ignores the options of Hadoop's builder, because none of them applies to an object. */
final class UploadsBuilder extends MultipartUploaderBuilderImpl<Uploads, UploadsBuilder> {
  private final Supplier<Uploads> uploads;

  UploadsBuilder(FileSystem files, Path base, Supplier<Uploads> uploads) {
    super(files, base);
    this.uploads = uploads;
  }

  @Override
  public UploadsBuilder getThisBuilder() {
    return this;
  }

  @Override
  public Uploads build() throws IOException {
    return uploads.get();
  }
}
