package dev.laneway.hadoop;

import dev.laneway.OpenOptions;
import java.io.FileNotFoundException;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Options.OpenFileOptions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.AbstractFSBuilderImpl;
import org.apache.hadoop.fs.impl.OpenFileParameters;

/**
 * What the caller of {@code openFile} says of a file before it is opened.
 *
 * <p>A status counts for what it says where it is one of this filesystem's: the open is then pinned to its version, and asks the store
 * nothing. Of another's, as of {@code fs.option.openfile.length}, the version isn't known, and lengths from elsewhere have been wrong; the
 * opening request learns both.
 *
 * @param bytes the file's size, where it can be relied on
 * @param version the state that is to be read, where it is known
 * @param policy how it is going to be read
 */
record OpenParameters(Optional<Long> bytes, Optional<String> version, ReadPolicy policy) {
  /** S3A's name for {@code fs.option.openfile.read.policy}. */
  private static final String FADVISE = "fs.s3a.experimental.input.fadvise";

  private static final Set<String> KNOWN = known();

  /** A file of which nothing is known. */
  static OpenParameters unknown(ReadPolicy policy) {
    return new OpenParameters(Optional.empty(), Optional.empty(), policy);
  }

  /**
   * Reads what a builder was given.
   *
   * @throws IllegalArgumentException for a mandatory option that isn't known, and for the status of a file of another name
   * @throws FileNotFoundException for the status of a directory
   */
  static OpenParameters of(Path path, OpenFileParameters given, ReadPolicy otherwise) throws FileNotFoundException {
    AbstractFSBuilderImpl.rejectUnknownMandatoryKeys(given.getMandatoryKeys(), KNOWN, "for " + path);
    ReadPolicy policy = policy(given.getOptions(), otherwise);
    FileStatus status = given.getStatus();
    if (status == null) {
      return unknown(policy);
    }
    if (!status.getPath().getName().equals(path.getName())) {
      throw new IllegalArgumentException("the status of " + status.getPath() + " says nothing of " + path);
    }
    if (status.isDirectory()) {
      throw new FileNotFoundException(path + " is a directory");
    }
    OpenParameters known = of(status);
    return new OpenParameters(known.bytes, known.version, policy);
  }

  /** What a file's status says that can be relied on. */
  static OpenParameters of(FileStatus status) {
    boolean isOurs = status instanceof EtagSource && status.getClass().getName().startsWith(ObjectStatus.class.getName());
    String version = isOurs ? ((EtagSource) status).getEtag() : null;
    return version == null
        ? unknown(ReadPolicy.ADAPTIVE)
        : new OpenParameters(Optional.of(status.getLen()), Optional.of(version), ReadPolicy.ADAPTIVE);
  }

  /**
   * The same for the library. The last bytes come with the opening request, the whole of a small file and the index of a table, or the first ones
   * of what is read in order; a file that is known is opened without one, unless its index is wanted.
   */
  OpenOptions options() {
    boolean isInOrder = policy == ReadPolicy.SEQUENTIAL;
    OpenOptions options = isInOrder ? OpenOptions.NONE.inOrder() : OpenOptions.NONE.footer(policy.footerBytes());
    if (version.isEmpty()) {
      return options;
    }
    if (bytes.isEmpty()) {
      return options.ifVersion(version.get());
    }
    OpenOptions known = OpenOptions.NONE.known(bytes.get(), version.get());
    return isInOrder ? known.inOrder() : policy == ReadPolicy.COLUMNAR ? known.footer(policy.footerBytes()) : known;
  }

  private static ReadPolicy policy(Configuration options, ReadPolicy otherwise) {
    String names = options.get(OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY, options.get(FADVISE, ""));
    return ReadPolicy.first(names).orElse(otherwise);
  }

  private static Set<String> known() {
    Set<String> known = new HashSet<>(OpenFileOptions.FS_OPTION_OPENFILE_STANDARD_OPTIONS);
    known.add(FADVISE);
    known.add("fs.s3a.readahead.range");
    known.add("fs.s3a.input.async.drain.threshold");
    return Set.copyOf(known);
  }
}
