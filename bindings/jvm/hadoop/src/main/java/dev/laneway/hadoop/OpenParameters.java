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
 * The options of an {@code openFile} call.
 *
 * <p>If the caller passes a status from this filesystem, opening sends no request, and reads are of the version in the
 * status. A status from another filesystem has no version, and neither has {@code fs.option.openfile.length}. Some
 * callers pass wrong lengths in either of them. So both are ignored, and the opening request fetches size and version.
 *
 * @param bytes The file's size, if it is known for certain.
 * @param version The version to read, if it is known.
 * @param policy The expected way of reading.
 */
record OpenParameters(Optional<Long> bytes, Optional<String> version, ReadPolicy policy) {
  /** S3A's name for {@code fs.option.openfile.read.policy}. */
  private static final String FADVISE = "fs.s3a.experimental.input.fadvise";

  private static final Set<String> KNOWN = known();

  /** Returns the options of a file about which nothing is known. */
  static OpenParameters unknown(ReadPolicy policy) {
    return new OpenParameters(Optional.empty(), Optional.empty(), policy);
  }

  /**
   * Reads a builder's options.
   *
   * @throws IllegalArgumentException if a mandatory option isn't supported, or if the status belongs to a file of
   *     another name
   * @throws FileNotFoundException if the status belongs to a directory
   */
  static OpenParameters of(Path path, OpenFileParameters given, ReadPolicy otherwise) throws FileNotFoundException {
    AbstractFSBuilderImpl.rejectUnknownMandatoryKeys(given.getMandatoryKeys(), KNOWN, "for " + path);
    ReadPolicy policy = policy(given.getOptions(), otherwise);
    FileStatus status = given.getStatus();
    if (status == null) {
      return unknown(policy);
    }
    if (!status.getPath().getName().equals(path.getName())) {
      throw new IllegalArgumentException("the status of " + status.getPath() + " can't be used to open " + path);
    }
    if (status.isDirectory()) {
      throw new FileNotFoundException(path + " is a directory");
    }
    OpenParameters known = of(status);
    return new OpenParameters(known.bytes, known.version, policy);
  }

  /** Returns the size and version in a file's status, if the status is from this filesystem. */
  static OpenParameters of(FileStatus status) {
    boolean isOurs = status instanceof EtagSource && status.getClass().getName().startsWith(ObjectStatus.class.getName());
    String version = isOurs ? ((EtagSource) status).getEtag() : null;
    return version == null
        ? unknown(ReadPolicy.ADAPTIVE)
        : new OpenParameters(Optional.of(status.getLen()), Optional.of(version), ReadPolicy.ADAPTIVE);
  }

  /**
   * Returns the library's options. The opening request fetches the last bytes, which are all of a small file or the
   * index of a columnar file. For reads in order, it fetches the first bytes instead. A file whose size and version are
   * known opens without a request, unless its index is needed.
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
