package dev.laneway;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import java.util.UUID;

/**
 * Loads the native library of this platform from the jar.
 *
 * <p>Each version of the library is unpacked once, into a folder that no other user may write to. A temporary file is
 * renamed when it is complete. A JVM lets only one class loader load a library from a given path. So each class loader
 * loads the file through its own hard link, which is removed afterwards. The operating system's loader recognises the
 * file by its inode. So all class loaders share one library and its one engine. If the file can't be linked, further
 * class loaders load a copy, which has its own engine.
 *
 * <p>{@code -Ddev.laneway.native.folder} names another folder, and {@code -Ddev.laneway.native.library} a library
 * outside the jar.
 */
final class NativeLibrary {
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rwx------");

  private NativeLibrary() {}

  /** Loads the library for the class loader of this class. */
  static void load() {
    try {
      String given = System.getProperty("dev.laneway.native.library");
      loadAsOwn(given == null ? unpacked() : Path.of(given).toRealPath());
    } catch (IOException failure) {
      throw failed("it can't be unpacked: " + failure, failure);
    }
  }

  /** Returns the path of the unpacked library. Unpacks it unless this process or another one has done so. */
  private static Path unpacked() throws IOException {
    String name = System.mapLibraryName("laneway_jvm");
    String resource = "native/" + platform() + "/" + name;
    String hash;
    try (InputStream listed = NativeLibrary.class.getResourceAsStream(resource + ".sha256")) {
      if (listed == null) {
        throw failed("the jar contains no native library for " + platform(), null);
      }
      hash = new String(listed.readAllBytes(), StandardCharsets.US_ASCII).strip();
    }
    if (!hash.matches("[0-9a-f]{64}")) {
      throw failed("its hash in the jar is missing or invalid", null);
    }
    Path library = folder().resolve(hash.substring(0, 32)).resolve(name);
    if (!Files.isRegularFile(library, LinkOption.NOFOLLOW_LINKS)) {
      unpack(resource, library);
    }
    return library;
  }

  private static void unpack(String resource, Path library) throws IOException {
    Files.createDirectories(library.getParent());
    if (System.getProperty("dev.laneway.native.temporary") != null) {
      // When the JVM exits, it removes these in reverse order: the file before its folder.
      library.getParent().toFile().deleteOnExit();
      library.toFile().deleteOnExit();
    }
    Path partial = library.resolveSibling(UUID.randomUUID() + ".tmp");
    try (InputStream packed = NativeLibrary.class.getResourceAsStream(resource)) {
      if (packed == null) {
        throw failed("the jar contains no native library for " + platform(), null);
      }
      Files.copy(packed, partial);
      // If another process unpacks the library at the same time, one file replaces the other, and both have the same
      // content.
      Files.move(partial, library, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(partial);
    }
  }

  /** Returns a folder that no other user can write to, because this process runs the code in it. */
  private static Path folder() throws IOException {
    String given = System.getProperty("dev.laneway.native.folder");
    if (given != null) {
      return owned(Path.of(given));
    }
    String cache = System.getenv("XDG_CACHE_HOME");
    Path parent =
        cache != null && Path.of(cache).isAbsolute()
            ? Path.of(cache)
            : Path.of(System.getProperty("user.home"), ".cache");
    try {
      return owned(parent.resolve("laneway").resolve("native"));
    } catch (IOException | SecurityException unusable) {
      return temporary();
    }
  }

  /**
   * Returns a temporary folder for this process, which the JVM removes when it exits. Such a folder is needed if the
   * user has no home, as is common in containers. All class loaders share it.
   */
  private static Path temporary() throws IOException {
    try {
      Object made =
          System.getProperties()
              .computeIfAbsent(
                  "dev.laneway.native.temporary",
                  name -> {
                    try {
                      Path folder = Files.createTempDirectory("laneway-native-").toRealPath();
                      folder.toFile().deleteOnExit();
                      return folder.toString();
                    } catch (IOException failure) {
                      throw new UncheckedIOException(failure);
                    }
                  });
      return Path.of((String) made);
    } catch (UncheckedIOException failure) {
      throw failure.getCause();
    }
  }

  /**
   * Creates a folder if it doesn't exist, and checks that it is safe.
   *
   * @throws IOException if another user owns it or may write to it
   */
  private static Path owned(Path folder) throws IOException {
    if (!isPosix(folder)) {
      return Files.createDirectories(folder).toRealPath();
    }
    if (!Files.isDirectory(folder)) {
      Files.createDirectories(folder.toAbsolutePath().getParent());
      try {
        Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(OWNER_ONLY));
      } catch (FileAlreadyExistsException made) {
        // Another process has just created the folder.
      }
    }
    Path real = folder.toRealPath();
    Set<PosixFilePermission> others =
        EnumSet.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE);
    others.retainAll(Files.getPosixFilePermissions(real));
    if (!others.isEmpty()) {
      throw new IOException(real + ": other users may write to this folder");
    }
    Path probe = Files.createTempFile(real, "owner-", ".tmp");
    try {
      if (!Files.getOwner(probe).equals(Files.getOwner(real))) {
        throw new IOException(real + ": another user owns this folder");
      }
    } finally {
      Files.delete(probe);
    }
    return real;
  }

  private static boolean isPosix(Path folder) {
    return folder.getFileSystem().supportedFileAttributeViews().contains("posix");
  }

  /** Loads the library under a name that no other class loader has used. */
  private static void loadAsOwn(Path library) throws IOException {
    String name = UUID.randomUUID() + "-" + library.getFileName();
    Path own = library.resolveSibling(name);
    try {
      Files.createLink(own, library);
    } catch (IOException | UnsupportedOperationException unlinkable) {
      loadUnlinked(library, name);
      return;
    }
    try {
      System.load(own.toString());
    } finally {
      Files.deleteIfExists(own);
    }
  }

  /** Loads the library without links: the first class loader loads the library itself, others load a copy. */
  private static void loadUnlinked(Path library, String name) throws IOException {
    try {
      System.load(library.toString());
    } catch (UnsatisfiedLinkError another) {
      Path copy = temporary().resolve(name);
      copy.toFile().deleteOnExit();
      Files.copy(library, copy);
      System.load(copy.toString());
    }
  }

  /** Returns the platform in the form {@code linux-x86_64}. */
  private static String platform() {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    String os = system.startsWith("mac") ? "macos" : system.replaceAll("[^a-z0-9].*", "");
    String processor =
        switch (machine) {
          case "amd64", "x86_64" -> "x86_64";
          case "aarch64", "arm64" -> "aarch64";
          default -> machine;
        };
    return os + "-" + processor;
  }

  private static UnsatisfiedLinkError failed(String why, Throwable cause) {
    UnsatisfiedLinkError failure = new UnsatisfiedLinkError("Laneway's native library: " + why);
    failure.initCause(cause);
    return failure;
  }
}
