package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawPathHandle;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.junit.jupiter.api.Test;

/** Tests the options that callers pass when they open or create a file. */
class OptionsTest {
  private static final Path FILE = new Path("s3a://lake/a.parquet");

  private static OpenFileParameters said(Map<String, String> options, FileStatus status) {
    Configuration conf = new Configuration(false);
    options.forEach(conf::set);
    return new OpenFileParameters()
        .withMandatoryKeys(Set.of())
        .withOptionalKeys(options.keySet())
        .withOptions(conf)
        .withStatus(status);
  }

  @Test
  void theFirstPolicyThatIsKnownCounts() {
    assertEquals(Optional.of(ReadPolicy.COLUMNAR), ReadPolicy.first("parquet, columnar, vector, random"));
    assertEquals(Optional.of(ReadPolicy.SEQUENTIAL), ReadPolicy.first("unheard-of, Whole-File"));
    assertEquals(Optional.empty(), ReadPolicy.first("unheard-of"));
    assertEquals(Optional.empty(), ReadPolicy.first(""));
  }

  @Test
  void aStatusOfThisFilesystemPinsTheVersionAndOthersDoNot() throws FileNotFoundException {
    ObjectStatus ours = ObjectStatus.file(FILE, 7, 64, 0, "u", "v1");
    OpenParameters known = OpenParameters.of(FILE, said(Map.of(), ours), ReadPolicy.ADAPTIVE);
    assertEquals(new OpenParameters(Optional.of(7L), Optional.of("v1"), ReadPolicy.ADAPTIVE), known);
    assertEquals(known, OpenParameters.of(FILE, said(Map.of(), ours.located()), ReadPolicy.ADAPTIVE));
    FileStatus other = new FileStatus(7, false, 1, 64, 0, FILE);
    Map<String, String> options = Map.of("fs.option.openfile.read.policy", "orc", "fs.option.openfile.length", "7");
    assertEquals(
        OpenParameters.unknown(ReadPolicy.COLUMNAR), OpenParameters.of(FILE, said(options, other), ReadPolicy.ADAPTIVE));
  }

  @Test
  void aStatusOfSomethingElseIsRefused() {
    ObjectStatus elsewhere = ObjectStatus.file(new Path("s3a://lake/b"), 7, 64, 0, "u", "v1");
    assertThrows(
        IllegalArgumentException.class, () -> OpenParameters.of(FILE, said(Map.of(), elsewhere), ReadPolicy.ADAPTIVE));
    ObjectStatus directory = ObjectStatus.directory(FILE, 0, "u");
    assertThrows(
        FileNotFoundException.class, () -> OpenParameters.of(FILE, said(Map.of(), directory), ReadPolicy.ADAPTIVE));
  }

  @Test
  void whatIsConditionalAtItsEndIsNotLookedForBefore() {
    CreateParameters plain = CreateParameters.plain(false, true, false);
    assertTrue(plain.looksForFile() && plain.looksForDirectory());
    CreateParameters over = CreateParameters.plain(true, true, false);
    assertTrue(!over.looksForFile() && over.looksForDirectory());
    Configuration options = new Configuration(false);
    options.set("fs.option.create.conditional.overwrite.etag", "v1");
    CreateParameters replaces = CreateParameters.of(options, true, true, false);
    assertFalse(replaces.looksForFile() || replaces.looksForDirectory());
    options.set("fs.option.create.conditional.overwrite.etag", "");
    assertThrows(IllegalArgumentException.class, () -> CreateParameters.of(options, true, true, false));
  }

  @Test
  void aHandleComesBackFromItsBytesAndOthersAreRefused() throws Exception {
    for (PinnedHandle handle : new PinnedHandle[] {new PinnedHandle("a/ü", "v1"), new PinnedHandle("b", null)}) {
      assertEquals(handle, PinnedHandle.of(new RawPathHandle(handle.bytes())));
    }
    for (byte[] bytes : new byte[][] {{}, {1, 2, 3, 4, 5, 6, 7}, {0x6c, 0x77, 0x68, 0x31}}) {
      assertThrows(
          InvalidPathHandleException.class,
          () -> PinnedHandle.of(new RawPathHandle(ByteBuffer.wrap(bytes))));
    }
  }
}
