package dev.laneway;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** The objects of a listing, which arrive in batches. The engine fetches the next batch while the caller reads one. */
final class ListedObjects extends Spliterators.AbstractSpliterator<ObjectMeta> {
  private final Handle handle;
  private final Queue<ObjectMeta> here = new ArrayDeque<>();
  private Call<Queue<ObjectMeta>> next;
  private boolean isOver;

  private ListedObjects(Handle handle) {
    super(Long.MAX_VALUE, Spliterator.ORDERED | Spliterator.NONNULL | Spliterator.DISTINCT);
    this.handle = handle;
  }

  static Stream<ObjectMeta> stream(Bucket bucket, Handle handle, String prefix, ListOptions options) {
    Packed packed = new Packed().text(prefix);
    options.write(packed);
    long number;
    try {
      number = Engine.now(Native.list(handle.number(), packed.bytes())).number();
    } catch (LanewayException failure) {
      throw new UncheckedIOException(failure);
    }
    String what = "a listing of " + bucket.url() + prefix;
    ListedObjects listed = new ListedObjects(Handle.watched(number, what));
    return StreamSupport.stream(listed, false).onClose(listed::close);
  }

  @Override
  public boolean tryAdvance(Consumer<? super ObjectMeta> action) {
    ObjectMeta one = here.poll();
    while (one == null) {
      if (isOver) {
        return false;
      }
      try {
        Call<Queue<ObjectMeta>> some = next == null ? some() : next;
        next = null;
        Queue<ObjectMeta> arrived = some.await();
        if (arrived.isEmpty()) {
          close();
          return false;
        }
        here.addAll(arrived);
        next = some();
      } catch (IOException failure) {
        close();
        throw new UncheckedIOException(failure);
      }
      one = here.poll();
    }
    action.accept(one);
    return true;
  }

  private Call<Queue<ObjectMeta>> some() {
    return Engine.begin(
        Native.LIST_SOME,
        handle,
        new Packed(),
        answer -> {
          Queue<ObjectMeta> some = new ArrayDeque<>();
          while (answer.hasMore()) {
            some.add(ObjectMeta.read(answer));
          }
          return some;
        });
  }

  private void close() {
    isOver = true;
    here.clear();
    handle.close();
    if (next != null) {
      next.giveUp();
      next = null;
    }
  }
}
