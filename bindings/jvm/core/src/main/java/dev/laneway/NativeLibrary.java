package dev.laneway;

/** The native library of this platform, which the jar brings. */
final class NativeLibrary {
  private NativeLibrary() {}

  static void load() {
    throw new UnsatisfiedLinkError("not yet");
  }
}
