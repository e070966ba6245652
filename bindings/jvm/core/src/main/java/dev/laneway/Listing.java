package dev.laneway;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The entries directly below a prefix. */
public final class Listing {
  private final List<ObjectMeta> objects;
  private final List<String> prefixes;

  private Listing(List<ObjectMeta> objects, List<String> prefixes) {
    this.objects = objects;
    this.prefixes = prefixes;
  }

  /** Returns the objects. */
  public List<ObjectMeta> objects() {
    return objects;
  }

  /** Returns the common prefixes of keys further down, like subdirectories. Each ends with a slash. */
  public List<String> prefixes() {
    return prefixes;
  }

  @Override
  public String toString() {
    return "Listing[objects=" + objects + ", prefixes=" + prefixes + "]";
  }

  static Listing read(Unpacked from) {
    List<ObjectMeta> objects = new ArrayList<>();
    List<String> prefixes = new ArrayList<>();
    while (from.hasMore()) {
      if (from.flag()) {
        objects.add(ObjectMeta.read(from));
      } else {
        prefixes.add(from.text());
      }
    }
    return new Listing(Collections.unmodifiableList(objects), Collections.unmodifiableList(prefixes));
  }
}
