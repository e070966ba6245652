package dev.laneway;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A container of Azure as URLs name it: {@code container@account.dfs.core.windows.net}, or only {@code container}.
 *
 * @param name The container's name.
 * @param host The account's host in the Blob service; empty if the URL doesn't name the account. The DFS service of an
 *     account has the same objects as its Blob service, and Laneway uses only the latter.
 */
public record AzureContainer(String name, Optional<String> host) {
  /** A host, or the beginning of a URL up to its host and port. */
  private static final Pattern HOST = Pattern.compile("^([A-Za-z]+://)?[^/?]*");

  /** Returns the container of a URL's authority, which is the part between the scheme and the path. */
  public static AzureContainer of(String authority) {
    int at = authority.indexOf('@');
    if (at < 0) {
      return new AzureContainer(authority, Optional.empty());
    }
    return new AzureContainer(authority.substring(0, at), Optional.of(inBlobService(authority.substring(at + 1))));
  }

  /**
   * Returns a URL or a host with the DFS service replaced by the Blob service of the same account. The host becomes
   * lower-case. The URL's path and query don't change.
   */
  public static String inBlobService(String urlOrHost) {
    return HOST.matcher(urlOrHost)
        .replaceFirst(host -> Matcher.quoteReplacement(host.group().toLowerCase(Locale.ROOT).replaceFirst("\\.dfs\\.", ".blob.")));
  }

  /** Returns the account's name. */
  public Optional<String> account() {
    return host.map(named -> named.split("\\.", 2)[0]);
  }

  /** Returns the account's hosts in the DFS service and in the Blob service. */
  public List<String> hosts() {
    return host.stream().flatMap(blob -> Stream.of(blob.replaceFirst("\\.blob\\.", ".dfs."), blob)).toList();
  }

  /**
   * Returns the container's URL for {@link Laneway#bucket}.
   *
   * @param namesHost false if the client has an endpoint of its own, so that the URL must not name the account's host
   */
  public String url(boolean namesHost) {
    return "az://" + name + (namesHost ? host.map(named -> "@" + named).orElse("") : "") + "/";
  }
}
