package dev.laneway.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

@ParameterizedClass
@ValueSource(strings = {"gs", "s3a", "abfss"})
class CapabilitiesTest {
  private final String scheme;
  private final Configuration conf = EmbeddedStore.with("lake").configuration();

  CapabilitiesTest(String scheme) {
    this.scheme = scheme;
  }

  @Test
  void whatCallersAskForByNameIsThere() throws IOException {
    Path path = new Path("/capabilities-" + scheme);
    try (FileSystem files = EmbeddedStore.open(scheme + "://lake/", conf)) {
      for (String capability : List.of(
          "fs.capability.bulk.delete",
          "fs.capability.etags.available",
          "fs.capability.multipart.uploader",
          "fs.capability.outputstream.abortable",
          "fs.capability.paths.pathhandles",
          "fs.option.create.conditional.overwrite",
          "fs.option.create.conditional.overwrite.etag",
          "in:readvectored",
          "IOStatistics")) {
        assertTrue(files.hasPathCapability(path, capability), capability);
      }
      for (String capability : List.of(
          "fs.capability.etags.preserved.in.rename",
          "fs.capability.paths.append",
          "fs.capability.paths.checksums",
          "fs.capability.vectoredio.sliced")) {
        assertFalse(files.hasPathCapability(path, capability), capability);
      }
      try (FSDataOutputStream out = files.create(path)) {
        assertTrue(out.hasCapability("fs.capability.outputstream.abortable"));
        assertFalse(out.hasCapability("hsync"));
      }
      try (FSDataInputStream in = files.open(path)) {
        for (String capability :
            List.of("in:readvectored", "in:unbuffer", "in:preadbytebuffer", "in:readbytebuffer", "iostatistics")) {
          assertTrue(in.hasCapability(capability), capability);
        }
        assertFalse(in.hasCapability("fs.capability.vectoredio.sliced"));
      }
      files.delete(path, false);
    }
  }

  @Test
  void versionsAreChecksumsOnlyWhereThatIsAskedFor() throws IOException {
    conf.setBoolean("fs.s3a.etag.checksum.enabled", true);
    Path path = new Path("/checksums-" + scheme);
    try (FileSystem files = EmbeddedStore.open(scheme + "://lake/", conf)) {
      files.create(path).close();
      boolean isAsked = scheme.equals("s3a");
      assertEquals(isAsked, files.getFileChecksum(path) != null);
      assertEquals(isAsked, files.hasPathCapability(path, "fs.capability.paths.checksums"));
      files.delete(path, false);
    }
  }
}
