package dev.laneway.hadoop;

import java.util.Set;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.StreamCapabilities;

/** The capabilities of a filesystem, which are the same on all its paths. */
final class Capabilities {
  private static final Set<String> ALWAYS = Set.of(
      CommonPathCapabilities.ABORTABLE_STREAM,
      CommonPathCapabilities.BULK_DELETE,
      CommonPathCapabilities.ETAGS_AVAILABLE,
      CommonPathCapabilities.FS_MULTIPART_UPLOADER,
      CommonPathCapabilities.FS_PATHHANDLES,
      CommonPathCapabilities.VIRTUAL_BLOCK_LOCATIONS,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE_ETAG,
      CreateFileOptionKeys.FS_OPTION_CREATE_CONTENT_TYPE,
      CreateFileOptionKeys.FS_OPTION_CREATE_IN_CLOSE,
      CreateParameters.HEADER,
      CreateParameters.PERFORMANCE,
      // Streams of this filesystem have these capabilities. Callers also query them for paths.
      StreamCapabilities.IOSTATISTICS,
      StreamCapabilities.VECTOREDIO,
      // S3A's names for a client that accepts directory markers even in directories with files, and keeps them.
      "fs.s3a.capability.directory.marker.aware",
      "fs.s3a.capability.directory.marker.policy.keep",
      "fs.s3a.capability.directory.marker.action.keep");

  private Capabilities() {}

  /** Returns whether the filesystem has a capability. The name must be in lower case. */
  static boolean has(String capability, Settings.Files files) {
    return ALWAYS.contains(capability)
        || (capability.equals(CommonPathCapabilities.FS_CHECKSUMS) && files.checksums());
  }
}
