package dev.laneway;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PackagingTest {
  @ParameterizedTest
  @ValueSource(strings = {"LICENSE", "NOTICE"})
  void the_jar_has_the_licence(String name) {
    assertTrue(Files.isRegularFile(Path.of("target", "classes", "META-INF", name)));
  }

  /**
   * With any other scope, a program that uses slf4j 2 would get our older version, which doesn't find the program's
   * logging library.
   */
  @ParameterizedTest
  @ValueSource(strings = {"core", "hadoop", "iceberg"})
  void slf4j_comes_with_the_program_and_not_with_us(String module) throws IOException {
    String page = Files.readString(Path.of("..", module, "pom.xml"));
    int begin = page.indexOf("<artifactId>slf4j-api</artifactId>");
    String dependency = page.substring(begin, page.indexOf("</dependency>", begin));
    assertTrue(dependency.contains("<scope>provided</scope>"), dependency);
  }
}
