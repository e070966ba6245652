package dev.laneway.hadoop;

import dev.laneway.Bucket;
import dev.laneway.MultipartUpload;
import dev.laneway.ObjectMeta;
import dev.laneway.ObjectWriter;
import dev.laneway.OpenOptions;
import dev.laneway.PutOptions;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.Options.HandleOpt;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathHandle;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.StorageStatistics;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.impl.PathCapabilitiesSupport;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.fs.statistics.impl.StorageStatisticsFromIOStatistics;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Progressable;
import org.apache.hadoop.util.functional.RemoteIterators;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hadoop's filesystem over a bucket of Google Cloud Storage or S3, or a container of Azure Blob Storage. It serves the
 * schemes that it is configured for: {@code gs}, {@code s3a}, {@code s3}, {@code abfs}, {@code abfss}, {@code wasb}, {@code
 * wasbs}, {@code az}. Without configuration it serves {@code laneway+gs}, {@code laneway+s3}, {@code laneway+s3a}, {@code
 * laneway+abfs} and {@code laneway+abfss}.
 *
 * <p>Files are objects, and directories are markers or prefixes of keys. A file appears when it is complete, or not at
 * all. Renames are copies by the store, and not atomic. The README of this module says what that means for jobs.
 */
public class LanewayFileSystem extends FileSystem implements IOStatisticsSource {
  private static final Logger LOG = LoggerFactory.getLogger(LanewayFileSystem.class);

  /** The committers for which a warning was logged. */
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

  /** True if no program will close this filesystem. */
  private final boolean isShared;

  private URI uri;
  private Path workingDirectory;
  private Settings settings;
  private Connection connection;
  private Keys keys;
  private Tally tally;
  private Lookup lookup;
  private Directories directories;
  private Listings listings;
  private Deletion deletion;
  private Renaming renaming;
  private volatile boolean isClosed;

  /** Called by Hadoop, which then {@linkplain #initialize initializes} it. */
  public LanewayFileSystem() {
    this(false);
  }

  /** @param isShared true if no program will close this filesystem, so it shares a client with others */
  LanewayFileSystem(boolean isShared) {
    this.isShared = isShared;
  }

  @Override
  public void initialize(URI name, Configuration given) throws IOException {
    super.initialize(name, given);
    Configuration conf = new Configuration(given);
    setConf(conf);
    settings = Settings.of(name, conf);
    warnOfCommitter(name.getScheme(), conf, false);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    String user = UserGroupInformation.getCurrentUser().getShortUserName();
    Path root = new Path("/");
    workingDirectory = settings.files().workingDirectory().map(Path::new).orElse(new Path("/user", user)).makeQualified(uri, root);
    connection = isShared ? Connection.shared(settings) : Connection.of(settings);
    Bucket bucket = connection.bucket();
    keys = new Keys(uri);
    tally = new Tally(statistics);
    lookup = new Lookup(bucket, keys, tally, settings.files().blockBytes(), user);
    directories = new Directories(connection, keys, lookup, tally);
    listings = new Listings(bucket, keys, lookup, tally);
    deletion = new Deletion(bucket, keys, lookup, directories, tally);
    renaming = new Renaming(bucket, keys, lookup, directories, deletion, tally);
  }

  @Override
  public String getScheme() {
    return uri == null ? super.getScheme() : uri.getScheme();
  }

  @Override
  public URI getUri() {
    return uri;
  }

  /** Returns null, because object stores have no delegation tokens. */
  @Override
  public String getCanonicalServiceName() {
    return null;
  }

  @Override
  public Path getWorkingDirectory() {
    return workingDirectory;
  }

  @Override
  public void setWorkingDirectory(Path directory) {
    workingDirectory = makeQualified(directory);
  }

  @Override
  @Deprecated
  public long getDefaultBlockSize() {
    return settings.files().blockBytes();
  }

  // Reading.

  @Override
  public FSDataInputStream open(Path file, int bufferSize) throws IOException {
    Path path = named(file);
    OpenParameters parameters = OpenParameters.unknown(settings.files().readPolicy());
    return tally.look(StoreStatisticNames.OP_OPEN, () -> Failures.await(path, open(path, parameters)));
  }

  @Override
  protected CompletableFuture<FSDataInputStream> openFileWithOptions(Path file, OpenFileParameters given)
      throws IOException {
    Path path = named(file);
    OpenParameters parameters = OpenParameters.of(path, given, settings.files().readPolicy());
    return tally.look(StoreStatisticNames.OP_OPENFILE, open(path, parameters));
  }

  @Override
  public FSDataInputStream open(PathHandle handle, int bufferSize) throws IOException {
    isOpen();
    PinnedHandle pinned = PinnedHandle.of(handle);
    Path path = keys.path(pinned.key())
        .orElseThrow(() -> new InvalidPathHandleException("no path has the key " + pinned.key()));
    OpenParameters parameters = new OpenParameters(
        Optional.empty(), Optional.ofNullable(pinned.version()), settings.files().readPolicy());
    try {
      return tally.look(StoreStatisticNames.OP_OPEN, () -> Failures.await(path, open(path, parameters)));
    } catch (IOException failed) {
      if (Failures.isConflict(failed)) {
        throw new InvalidPathHandleException(path + " was replaced or moved after the handle was made", failed);
      }
      throw failed;
    }
  }

  /**
   * Returns a handle of a file. A handle identifies an object only by its key, so it can't follow a moved file.
   *
   * @throws UnsupportedOperationException If the handle must follow a moved file. Also if the handle must exclude
   *     changes, and the status doesn't contain the file's version.
   */
  @Override
  protected PathHandle createPathHandle(FileStatus status, HandleOpt... options) {
    if (status.isDirectory()) {
      throw new IllegalArgumentException(status.getPath() + " is a directory");
    }
    boolean mayMove = HandleOpt.getOpt(HandleOpt.Location.class, options).map(HandleOpt.Location::allowChange).orElse(false);
    boolean mayChange = HandleOpt.getOpt(HandleOpt.Data.class, options).map(HandleOpt.Data::allowChange).orElse(false);
    OpenParameters known = OpenParameters.of(status);
    if (mayMove) {
      throw new UnsupportedOperationException("a handle can't follow a file that is moved");
    }
    if (!mayChange && known.version().isEmpty()) {
      throw new UnsupportedOperationException(
          "a handle that doesn't allow changes of the file needs a status from this filesystem, which has its version");
    }
    return new PinnedHandle(keys.of(makeQualified(status.getPath())), mayChange ? null : known.version().get());
  }

  @Override
  public FileChecksum getFileChecksum(Path file, long length) throws IOException {
    Path path = named(file);
    return tally.look(StoreStatisticNames.OP_GET_FILE_CHECKSUM, () -> {
      if (!settings.files().checksums()) {
        return null;
      }
      ObjectStatus status = lookup.status(path);
      if (status.isDirectory()) {
        throw new FileNotFoundException(path + " is a directory");
      }
      return new VersionChecksum(status.getEtag());
    });
  }

  // Looking up and listing.

  @Override
  public FileStatus getFileStatus(Path at) throws IOException {
    Path path = named(at);
    return tally.look(StoreStatisticNames.OP_GET_FILE_STATUS, () -> lookup.status(path));
  }

  @Override
  public FileStatus[] listStatus(Path at) throws IOException {
    Path path = named(at);
    return tally.look(StoreStatisticNames.OP_LIST_STATUS, () -> listings.in(path).toArray(new FileStatus[0]));
  }

  @Override
  public RemoteIterator<LocatedFileStatus> listLocatedStatus(Path at) throws IOException {
    Path path = named(at);
    return tally.look(StoreStatisticNames.OP_LIST_LOCATED_STATUS, () -> RemoteIterators.mappingRemoteIterator(
        RemoteIterators.remoteIteratorFromIterable(listings.in(path)), ObjectStatus::located));
  }

  @Override
  public RemoteIterator<LocatedFileStatus> listFiles(Path at, boolean isRecursive) throws IOException {
    Path path = named(at);
    return tally.look(StoreStatisticNames.OP_LIST_FILES, () -> {
      if (isRecursive) {
        return listings.below(path, ObjectStatus::located);
      }
      return RemoteIterators.mappingRemoteIterator(
          RemoteIterators.filteringRemoteIterator(
              RemoteIterators.remoteIteratorFromIterable(listings.in(path)), FileStatus::isFile),
          ObjectStatus::located);
    });
  }

  @Override
  public ContentSummary getContentSummary(Path at) throws IOException {
    Path path = named(at);
    return tally.look(StoreStatisticNames.OP_GET_CONTENT_SUMMARY, () -> listings.summary(path));
  }

  @Override
  public BlockLocation[] getFileBlockLocations(FileStatus file, long start, long bytes) throws IOException {
    if (file == null || start >= file.getLen()) {
      return file == null ? null : new BlockLocation[0];
    }
    return ObjectStatus.blocks(0, file.getLen());
  }

  /**
   * Returns the headers and metadata of a file's object, under S3A's names: {@code header.Content-Type}, or {@code
   * header.NAME} for user metadata. A directory has none.
   */
  @Override
  public Map<String, byte[]> getXAttrs(Path at) throws IOException {
    return attributes(StoreStatisticNames.OP_XATTR_GET_MAP, at);
  }

  @Override
  public Map<String, byte[]> getXAttrs(Path at, List<String> names) throws IOException {
    Map<String, byte[]> attributes = attributes(StoreStatisticNames.OP_XATTR_GET_NAMED_MAP, at);
    attributes.keySet().retainAll(names);
    return attributes;
  }

  /** Returns null if the file has no such attribute, as S3A does. */
  @Override
  public byte[] getXAttr(Path at, String name) throws IOException {
    return attributes(StoreStatisticNames.OP_XATTR_GET_NAMED, at).get(name);
  }

  @Override
  public List<String> listXAttrs(Path at) throws IOException {
    return List.copyOf(attributes(StoreStatisticNames.OP_XATTR_LIST, at).keySet());
  }

  private Map<String, byte[]> attributes(String operation, Path at) throws IOException {
    Path path = named(at);
    return tally.look(operation, () -> {
      String key = keys.of(path);
      Optional<ObjectMeta> object = Failures.await(path, lookup.file(key));
      if (object.isEmpty() && Failures.await(path, lookup.folder(key)).isEmpty()) {
        throw Lookup.missing(path);
      }
      return object.map(meta -> ObjectHeaders.of(meta, settings.store())).orElseGet(TreeMap::new);
    });
  }

  // Writing.

  @Override
  public FSDataOutputStream create(
      Path file,
      FsPermission permission,
      boolean overwrites,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    return begin(file, CreateParameters.plain(overwrites, true, settings.files().skipsChecks()), progress);
  }

  @Override
  public FSDataOutputStream createNonRecursive(
      Path file,
      FsPermission permission,
      EnumSet<CreateFlag> flags,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    boolean overwrites = flags.contains(CreateFlag.OVERWRITE);
    return begin(file, CreateParameters.plain(overwrites, false, settings.files().skipsChecks()), progress);
  }

  @Override
  public FSDataOutputStreamBuilder<?, ?> createFile(Path file) {
    CreateBuilder builder = new CreateBuilder(
        this, makeQualified(file), settings.files().skipsChecks(), (path, parameters) -> begin(path, parameters, null));
    return builder.create().overwrite(true).recursive();
  }

  /** @throws UnsupportedOperationException always, because objects can't be appended to */
  @Override
  public FSDataOutputStream append(Path file, int bufferSize, Progressable progress) {
    throw new UnsupportedOperationException("an object can't be appended to: " + file);
  }

  @Override
  public MultipartUploaderBuilder<?, ?> createMultipartUploader(Path base) throws IOException {
    Path path = named(base);
    return new UploadsBuilder(this, path, () -> new Uploads(path, connection, keys, lookup, tally));
  }

  // Making directories, renaming and deleting.

  @Override
  public boolean mkdirs(Path directory, FsPermission permission) throws IOException {
    Path path = named(directory);
    return tally.change(StoreStatisticNames.OP_MKDIRS, () -> {
      directories.make(path);
      return true;
    });
  }

  @Override
  public boolean rename(Path source, Path place) throws IOException {
    Path from = named(source);
    Path to = named(place);
    return tally.change(StoreStatisticNames.OP_RENAME, () -> renaming.rename(from, to));
  }

  @Override
  public boolean delete(Path at, boolean isRecursive) throws IOException {
    Path path = named(at);
    return tally.change(StoreStatisticNames.OP_DELETE, () -> {
      String bucket = connection.bucket().url();
      Optional<PendingFile> uncommitted = Uncommitted.of(keys.of(path)).flatMap(file -> Attempts.take(bucket, file));
      if (uncommitted.isPresent()) {
        commits().abort(path, uncommitted.get());
        return true;
      }
      return deletion.delete(path, isRecursive);
    });
  }

  @Override
  public BulkDelete createBulkDelete(Path base) throws IOException {
    Path path = named(base);
    tally.count(StoreStatisticNames.OP_BULK_DELETE);
    return new BulkDeletion(path, settings.files().pageSize(), connection.bucket(), keys, tally);
  }

  // Capabilities, statistics and closing.

  @Override
  public boolean hasPathCapability(Path at, String capability) throws IOException {
    Path path = makeQualified(at);
    String asked = PathCapabilitiesSupport.validatePathCapabilityArgs(path, capability);
    return Capabilities.has(asked, settings.files()) || super.hasPathCapability(path, asked);
  }

  @Override
  public IOStatistics getIOStatistics() {
    if (tally == null) {
      return null;
    }
    connection.counters().ifPresent(tally::engine);
    return tally.getIOStatistics();
  }

  /** Returns the same counts in Hadoop's older form. */
  @Override
  public StorageStatistics getStorageStatistics() {
    return new StorageStatisticsFromIOStatistics(toString(), getScheme(), getIOStatistics());
  }

  @Override
  public void close() throws IOException {
    if (isClosed) {
      return;
    }
    try {
      // This deletes the paths of `deleteOnExit`.
      super.close();
    } finally {
      isClosed = true;
      if (connection != null) {
        // Keep the engine's counts for callers that log the statistics later.
        getIOStatistics();
        connection.close();
      }
    }
  }

  @Override
  public String toString() {
    return String.format(Locale.ROOT, "LanewayFileSystem[%s]", uri);
  }

  /** Returns the commits for {@link UploadCommitter}. */
  Commits commits() throws IOException {
    isOpen();
    return new Commits(connection.bucket(), keys, deletion, tally);
  }

  private CompletableFuture<FSDataInputStream> open(Path path, OpenParameters parameters) throws IOException {
    String key = keys.of(path);
    if (key.isEmpty()) {
      return CompletableFuture.failedFuture(new FileNotFoundException(path + " is a directory"));
    }
    OpenOptions options = parameters.options();
    if (parameters.bytes().isEmpty()) {
      tally.head();
    }
    // The reads count for this thread, not for the thread that receives the answer.
    InputTally ofFile = new InputTally(tally);
    CompletableFuture<FSDataInputStream> opened = new CompletableFuture<>();
    connection.bucket().openAsync(key, options).whenComplete((reader, failure) -> {
      if (failure != null && Failures.isNotFound(failure)) {
        // Say so if the path is a directory. If this can't be found out, report the first failure.
        lookup.folder(key).whenComplete((folder, unknown) -> opened.completeExceptionally(
            unknown == null && folder.isPresent()
                ? new FileNotFoundException(path + " is a directory")
                : Failures.of(path, failure)));
      } else if (failure != null) {
        opened.completeExceptionally(Failures.of(path, failure));
      } else if (!opened.complete(new FSDataInputStream(new ObjectInput(path, reader, ofFile)))) {
        reader.close();
      }
    });
    return opened;
  }

  private FSDataOutputStream begin(Path file, CreateParameters parameters, Progressable progress) throws IOException {
    Path path = named(file);
    warnOfCommitter(getScheme(), getConf(), true);
    String operation =
        parameters.isRecursive() ? StoreStatisticNames.OP_CREATE : StoreStatisticNames.OP_CREATE_NON_RECURSIVE;
    return tally.change(operation, () -> output(path, parameters, progress));
  }

  private FSDataOutputStream output(Path path, CreateParameters parameters, Progressable progress) throws IOException {
    String key = keys.of(path);
    if (key.isEmpty()) {
      throw new PathIOException(path.toString(), "the root isn't a file");
    }
    Optional<Uncommitted> uncommitted = Uncommitted.of(key);
    if (uncommitted.isPresent()) {
      return new FSDataOutputStream(upload(path, uncommitted.get(), parameters), statistics);
    }
    check(path, key, parameters);
    ObjectWriter writer = connection.bucket().writer(key, parameters.put(connection.described()));
    ObjectOutput output = new ObjectOutput(path, key, writer, tally, progress, () -> isClosed, lookup);
    return new FSDataOutputStream(output, statistics);
  }

  /** Writes a file that appears when its job commits. Sends no lookups, because no other attempt writes there. */
  private UploadOutput upload(Path path, Uncommitted uncommitted, CreateParameters parameters) throws IOException {
    Bucket bucket = connection.bucket();
    if (!parameters.overwrites() && Attempts.file(bucket.url(), uncommitted).isPresent()) {
      throw new FileAlreadyExistsException(path + " already exists");
    }
    // The upload has no condition, because multipart uploads allow none. A committed job replaces existing files.
    PutOptions described = parameters.described(connection.described());
    CompletableFuture<MultipartUpload> upload = CompletableFuture.supplyAsync(() -> {
      try {
        tally.count(StoreStatisticNames.OBJECT_MULTIPART_UPLOAD_INITIATED);
        return bucket.beginMultipart(uncommitted.place(), described);
      } catch (IOException failed) {
        throw new CompletionException(failed);
      }
    });
    Commits commits = commits();
    UploadOutput.Written listener = file -> {
      Optional<PendingFile> replaced = Attempts.wrote(bucket.url(), uncommitted, file);
      try {
        if (replaced.isPresent()) {
          commits.abort(path, replaced.get());
        }
      } catch (IOException failed) {
        LOG.warn("the upload of an earlier file {} could not be aborted", path, failed);
      }
    };
    return new UploadOutput(path, uncommitted.place(), upload, listener, tally, () -> isClosed);
  }

  /** Checks at once that no file or directory has the file's name, and that its parent isn't a file. */
  private void check(Path path, String key, CreateParameters parameters) throws IOException {
    CompletableFuture<Boolean> isFile = parameters.looksForFile()
        ? lookup.file(key).thenApply(Optional::isPresent)
        : CompletableFuture.completedFuture(false);
    CompletableFuture<Boolean> isFolder = parameters.looksForDirectory()
        ? lookup.folder(key).thenApply(Optional::isPresent)
        : CompletableFuture.completedFuture(false);
    if (!parameters.isRecursive()) {
      Path above = path.getParent();
      if (!lookup.status(above).isDirectory()) {
        throw new ParentNotDirectoryException(above + " is a file");
      }
    }
    if (Failures.await(path, isFolder)) {
      throw new FileAlreadyExistsException(path + " is a directory");
    }
    if (Failures.await(path, isFile)) {
      throw new FileAlreadyExistsException(path + " already exists");
    }
  }

  /**
   * Logs a warning, once per committer, for each committer that can fail with this filesystem. One of them is Hadoop's
   * default for {@code s3a}. With it, a job fails before it writes anything, so this warns when the filesystem is
   * opened. With the other, a job goes wrong only if it writes.
   */
  private static void warnOfCommitter(String scheme, Configuration conf, boolean writes) {
    String key = "mapreduce.outputcommitter.factory.scheme." + scheme;
    String factory = conf.getTrimmed(key, "");
    String wrong;
    if (factory.endsWith(".S3ACommitterFactory")) {
      wrong = "it commits files of S3AFileSystem only, so most jobs that write here fail";
    } else if (factory.endsWith(".ManifestCommitterFactory") && writes) {
      wrong = "with it, Spark's dynamic partition overwrite may add rows instead of replacing them";
    } else {
      return;
    }
    if (WARNED.add(key + factory)) {
      LOG.warn(
          "{} is {} (set by {}): {}. In mapred-site.xml or in the job, set it to"
              + " dev.laneway.hadoop.UploadCommitterFactory; mapred-default.xml overrides core-site.xml",
          key, factory, source(conf, key), wrong);
    }
  }

  /** Returns the file that a value first came from. A job's own file, which copies values, is a later source. */
  private static String source(Configuration conf, String key) {
    String[] sources = conf.getPropertySources(key);
    return sources == null || sources.length == 0 || sources[0].equals("programmatically") ? "the program" : sources[0];
  }

  private Path named(Path path) throws IOException {
    isOpen();
    return makeQualified(path);
  }

  private void isOpen() throws IOException {
    if (isClosed) {
      throw new IOException(uri + ": the filesystem is closed");
    }
  }
}
