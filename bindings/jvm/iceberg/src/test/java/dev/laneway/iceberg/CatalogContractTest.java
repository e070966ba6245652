package dev.laneway.iceberg;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.laneway.hadoop.EmbeddedStore;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.CatalogTests;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Iceberg's own tests of catalogs, with table files in Laneway. */
@ParameterizedClass
@ValueSource(strings = {"gs", "s3", "abfss"})
class CatalogContractTest extends CatalogTests<JdbcCatalog> {
  private final String warehouse;
  private JdbcCatalog catalog;

  CatalogContractTest(String scheme) {
    this.warehouse = Catalogs.root(scheme, "lake") + "warehouse-" + UUID.randomUUID();
  }

  @BeforeEach
  void open() {
    catalog = initCatalog("lake", Map.of());
  }

  @Override
  protected JdbcCatalog catalog() {
    return catalog;
  }

  @Override
  protected JdbcCatalog initCatalog(String name, Map<String, String> additional) {
    Map<String, String> properties = new HashMap<>(Catalogs.properties(EmbeddedStore.with("lake")));
    properties.put(CatalogProperties.URI, "jdbc:sqlite:file::memory:?" + UUID.randomUUID());
    properties.put(CatalogProperties.WAREHOUSE_LOCATION, warehouse);
    properties.put("jdbc.schema-version", "V1");
    // Iceberg's tests expect these default properties.
    properties.put(CatalogProperties.TABLE_DEFAULT_PREFIX + "default-key1", "catalog-default-key1");
    properties.put(CatalogProperties.TABLE_DEFAULT_PREFIX + "default-key2", "catalog-default-key2");
    properties.put(CatalogProperties.TABLE_DEFAULT_PREFIX + "override-key3", "catalog-default-key3");
    properties.put(CatalogProperties.TABLE_OVERRIDE_PREFIX + "override-key3", "catalog-override-key3");
    properties.put(CatalogProperties.TABLE_OVERRIDE_PREFIX + "override-key4", "catalog-override-key4");
    properties.putAll(additional);
    JdbcCatalog made = new JdbcCatalog();
    made.initialize(name, properties);
    return made;
  }

  @Override
  protected String baseTableLocation(TableIdentifier name) {
    return warehouse + "/" + name.namespace() + "/" + name.name();
  }

  /** Replaces Iceberg's own test, which moves the file on a local disk. */
  @Override
  @Test
  public void testLoadTableWithMissingMetadataFile(@TempDir Path unused) {
    catalog.createNamespace(TBL.namespace());
    Table table = catalog.buildTable(TBL, SCHEMA).create();
    String metadata = ((HasTableOperations) table).operations().current().metadataFileLocation();
    table.io().deleteFile(metadata);
    NotFoundException missing = assertThrows(NotFoundException.class, () -> catalog.loadTable(TBL));
    assertTrue(missing.getMessage().contains(metadata), missing.getMessage());
  }

  @Override
  protected boolean supportsNamespaceProperties() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithDot() {
    // This catalog stores a namespace with a dot as two namespaces.
    return false;
  }

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }
}
