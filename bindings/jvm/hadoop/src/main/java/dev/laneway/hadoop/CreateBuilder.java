package dev.laneway.hadoop;

import java.io.IOException;
import java.util.EnumSet;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;

/** Collects the options of a {@code createFile} call, and then opens the file for writing. */
final class CreateBuilder extends FSDataOutputStreamBuilder<FSDataOutputStream, CreateBuilder> {
  /** Opens the file for writing. */
  interface Begin {
    FSDataOutputStream begin(Path path, CreateParameters parameters) throws IOException;
  }

  private final Begin begin;
  private final boolean skipsChecks;

  CreateBuilder(FileSystem files, Path path, boolean skipsChecks, Begin begin) {
    super(files, path);
    this.begin = begin;
    this.skipsChecks = skipsChecks;
  }

  @Override
  public CreateBuilder getThisBuilder() {
    return this;
  }

  @Override
  public FSDataOutputStream build() throws IOException {
    Path path = getPath();
    Set<String> mandatory = getMandatoryKeys().stream()
        .filter(key -> !key.startsWith(CreateParameters.HEADER + "."))
        .collect(Collectors.toSet());
    rejectUnknownMandatoryKeys(mandatory, CreateParameters.KNOWN, "for " + path);
    EnumSet<CreateFlag> flags = getFlags();
    if (flags.contains(CreateFlag.APPEND)) {
      throw new UnsupportedOperationException("an object can't be appended to: " + path);
    }
    if (!flags.contains(CreateFlag.CREATE) && !flags.contains(CreateFlag.OVERWRITE)) {
      throw new PathIOException(path.toString(), "the builder has neither the flag CREATE nor OVERWRITE");
    }
    boolean overwrites = flags.contains(CreateFlag.OVERWRITE);
    return begin.begin(path, CreateParameters.of(getOptions(), overwrites, isRecursive(), skipsChecks));
  }
}
