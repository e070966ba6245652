package dev.laneway.hadoop;

import dev.laneway.ObjectMeta;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/** The headers and metadata of an object as a file's extended attributes, under the names that S3A gives them. */
final class ObjectHeaders {
  private static final String BEGINNING = "header.";

  private ObjectHeaders() {}

  static Map<String, byte[]> of(ObjectMeta meta, Settings.Store store) {
    Map<String, byte[]> headers = new TreeMap<>();
    if (meta.metadata() != null) {
      meta.metadata().forEach((name, value) -> put(headers, name, value));
    }
    put(headers, "Cache-Control", meta.cacheControl());
    put(headers, "Content-Disposition", meta.contentDisposition());
    put(headers, "Content-Encoding", meta.contentEncoding());
    put(headers, "Content-Language", meta.contentLanguage());
    put(headers, "Content-Length", meta.size());
    put(headers, "Content-Type", meta.contentType());
    put(headers, "ETag", meta.etag());
    put(headers, "Last-Modified", meta.updated());
    String storageClass = switch (store) {
      case S3 -> "x-amz-storage-class";
      case GCS -> "x-goog-storage-class";
      case AZURE -> "x-ms-access-tier";
    };
    put(headers, storageClass, meta.storageClass());
    return headers;
  }

  private static void put(Map<String, byte[]> headers, String name, Object value) {
    if (value != null) {
      headers.put(BEGINNING + name, value.toString().getBytes(StandardCharsets.UTF_8));
    }
  }
}
