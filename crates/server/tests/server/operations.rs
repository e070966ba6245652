//! Finds out which of Amazon's, Google's and Azure's operations exist, by a request for each. `OPERATIONS.md` has the results.
//!
//! `LANEWAY_WRITE_OPERATIONS=1 cargo test -p laneway-server --test server operations` rewrites the page.

mod amazon;
mod azure;
mod google;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use laneway_server::Attributes;

use crate::client::{Protocol, Rig};

/// An operation and a request for it. `{upload}`, `{etag}`, `{session}`, `{generation}`, `{copy}` and `{tomorrow}` are
/// replaced by the fixture's values.
pub(crate) struct Probe {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

/// The page's text about differences that the status of an answer doesn't show.
const DIFFERENCES: &str = "
Done with a difference:

- Every client may do everything, and the account `000000000000` owns everything. If a request has a signature, the store
  verifies it.
- The store refuses bucket policies, lifecycles, GCS `iam`, and canned access control lists that grant access to others
  (501). With `--accept-unenforced`, it stores and returns them, but doesn't enforce them.
- The store knows only predefined access control lists. GetObjectAcl, GetBucketAcl and `projection=full` show them. The
  store refuses grants (`x-amz-grant-*`) and lists in documents (501). It refuses an access control list in a JSON resource unless it
  equals a predefined one.
- DeleteObjects accepts `x-amz-bypass-governance-retention` for every bucket. S3 refuses this header for a bucket without
  Object Lock.
- `buckets.insert` and `buckets.patch` keep `website`, `billing` and `iamConfiguration`, which have no effect. Autoclass, logging and default KMS keys are refused (501).
- A bucket with a `softDeletePolicy` keeps deleted and overwritten objects in memory until the server ends: at most
  100,000 of them, and 1 GiB. Above that, it drops those whose retention ends first. They also go with their bucket.
- Only buckets that were made with a hierarchical namespace have folders. The store keeps the folders in memory. After a
  restart, a bucket has only the folders of its objects.
- Headers of Google's XML API can't set locks of objects (501). Holds and retentions set through the JSON API also protect
  objects from requests of the XML API.
- Checksums of S3 are CRC32, CRC32C, CRC64NVME, SHA-1 and SHA-256. MD5, SHA-512 and XXHash are refused (501).
- The file of a form (PostObject) may have at most 8 MiB.
- If the disk is full, the store answers 507, both to S3 and to GCS requests.
- Azure has one account. Unlike S3 and GCS requests, its requests need a signature, a SAS token or a bearer token, as at the
  service. A bearer token may have any value. Only containers with public access permit anonymous reads.
- Blobs of Azure are block blobs. Append blobs can be made and appended to. Page blobs can be made and read, but not written
  (501).
- The source of an Azure copy is a blob of this store. Copies end at once. A test can make them pending (`copies_take`).
- Leases and service properties of Azure are in memory. Its blob names may have 1024 bytes, where the service counts 1024
  characters. A snapshot shows as a noncurrent version in the other dialects.
- `GET /_laneway/health` answers `ok`. `POST /_laneway/reset` deletes everything. It then recreates the buckets of
  `--bucket` and the objects of `--seed`.
";

const RETENTION: &str =
    "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2127-01-31T00:00:00Z</RetainUntilDate></Retention>";
const LEGAL_HOLD: &str = "<LegalHold><Status>ON</Status></LegalHold>";

const fn probe(name: &'static str, method: &'static str, path: &'static str) -> Probe {
    Probe { name, method, path, headers: &[], body: "" }
}

impl Probe {
    const fn with(self, headers: &'static [(&'static str, &'static str)]) -> Probe {
        Probe { headers, ..self }
    }

    const fn sending(self, body: &'static str) -> Probe {
        Probe { body, ..self }
    }

    /// Sends the request to a server with an object `k`, an archived object, an append blob and an upload of `k`. Returns the status.
    fn status(&self, dialect: &[(&str, &str)]) -> u16 {
        let rig = Rig::with(Protocol::PlainH1, |config| {
            // A copy that can be aborted.
            config.azure.copies_take = Duration::from_secs(3600);
        });
        rig.server.create_bucket("empty").unwrap();
        rig.server.store().put("demo", "k", b"hello").unwrap();
        let tree = r#"{"name": "tree", "hierarchicalNamespace": {"enabled": true}, "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": true}}}"#;
        rig.send("POST", "/storage/v1/b?project=p", &[("content-type", "application/json")], tree).unwrap();
        rig.server.store().put("tree", "x/k", b"hello").unwrap();
        let empty = r#"{"name": "e/"}"#;
        rig.send("POST", "/storage/v1/b/tree/folders", &[("content-type", "application/json")], empty)
            .unwrap();
        let managed = r#"{"name": "m/"}"#;
        rig.send(
            "POST",
            "/storage/v1/b/tree/managedFolders",
            &[("content-type", "application/json")],
            managed,
        )
        .unwrap();
        rig.server.create_bucket("soft").unwrap();
        rig.server.store().keep_deleted("soft").unwrap();
        let generation = rig.server.store().put("soft", "k", b"hello").unwrap().generation.to_string();
        rig.send("DELETE", "/storage/v1/b/soft/o/k", &[], "").unwrap();
        // Locks need a bucket of their own, whose policy isn't locked yet.
        rig.server.create_bucket("vault").unwrap();
        rig.server.store().allow_locks("vault").unwrap();
        rig.server.store().put("vault", "k", b"hello").unwrap();
        let policy = r#"{"retentionPolicy": {"retentionPeriod": "1"}}"#;
        rig.send("PATCH", "/storage/v1/b/vault", &[("content-type", "application/json")], policy).unwrap();
        let cors = "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>";
        let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
        for (path, body) in [
            ("/vault?cors", cors),
            ("/vault?tagging", tags),
            ("/vault/k?retention", RETENTION),
            ("/vault/k?legal-hold", LEGAL_HOLD),
        ] {
            assert_eq!(rig.send("PUT", path, &[], body).unwrap().status, 200);
        }
        let cold = Attributes { storage_class: Some("GLACIER".to_owned()), ..Attributes::default() };
        rig.server.store().put_with("demo", "cold", b"hello", cold).unwrap();
        let send = |method: &str, path: &str, headers: &[(&str, &str)], body: String| {
            rig.send(method, path, &[dialect, headers].concat(), body).unwrap()
        };
        let mut upload = String::new();
        let mut etag = String::new();
        if [self.path, self.body].iter().any(|text| text.contains("{upload}") || text.contains("{etag}")) {
            upload = send("POST", "/demo/k?uploads", &[], String::new()).element("UploadId").to_owned();
            let part = format!("/demo/k?partNumber=1&uploadId={upload}");
            etag = send("PUT", &part, &[], "part".to_owned()).header("etag").to_owned();
        }
        let mut session = String::new();
        if self.path.contains("{session}") {
            let begun = rig.send("POST", google::SESSION, &[], "").unwrap();
            session =
                begun.header("location").split_once(&rig.server.url()).map_or("", |(_, at)| at).to_owned();
        }
        let mut copy = String::new();
        if self.path.contains("{copy}") {
            let source = [("x-ms-copy-source", "http://localhost/devstoreaccount1/demo/cold")];
            let begun = send("PUT", "/devstoreaccount1/demo/k", &source, String::new());
            copy = begun.header("x-ms-copy-id").to_owned();
        }
        if dialect == azure::HEADERS {
            let cors = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
                        <AllowedHeaders/><ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
            send("PUT", "/devstoreaccount1?restype=service&comp=properties", &[], cors.to_owned());
            let appended = "/devstoreaccount1/demo/appended";
            assert_eq!(send("PUT", appended, azure::APPEND_BLOB, String::new()).status, 201);
        }
        let tomorrow = time::OffsetDateTime::from(SystemTime::now() + Duration::from_secs(86_400));
        let tomorrow = format!("{}-{:02}-{:02}", tomorrow.year(), u8::from(tomorrow.month()), tomorrow.day());
        let filled = |text: &str| {
            let text = text.replace("{upload}", &upload).replace("{etag}", &etag).replace("{copy}", &copy);
            let text = text.replace("{tomorrow}", &tomorrow);
            text.replace("{session}", &session).replace("{generation}", &generation)
        };
        let answer = send(self.method, &filled(self.path), self.headers, filled(self.body));
        answer.status
    }

    fn row(&self, dialect: &[(&str, &str)]) -> String {
        let path =
            self.path.replace("/demo", "/BUCKET").replace("/empty", "/BUCKET").replace("/new", "/BUCKET");
        let path = path.replace("/vault", "/BUCKET").replace("/tree", "/BUCKET").replace("/soft", "/BUCKET");
        let path = path
            .replace("/devstoreaccount1", "/ACCOUNT")
            .replace("BUCKET/k", "BUCKET/KEY")
            .replace("BUCKET/cold", "BUCKET/KEY")
            .replace("BUCKET/appended", "BUCKET/KEY")
            .replace("/o/k", "/o/KEY");
        let named: Vec<_> =
            self.headers.iter().map(|(name, _)| *name).filter(|name| name.contains("copy-")).collect();
        let headers =
            if named.is_empty() { String::new() } else { format!(" with `{}`", named.join("`, `")) };
        let done = match self.status(dialect) {
            200..300 | 308 => "yes".to_owned(),
            refused => refused.to_string(),
        };
        format!("| {} | `{} {path}`{headers} | {done} |\n", self.name, self.method)
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Operations\n\nThis page lists the operations of Amazon S3, Google Cloud Storage and Azure Blob Storage, and marks those that the\n\
         embedded store supports. `tests/server/operations.rs` tries each operation, and fails if an answer differs from this page. \
         `LANEWAY_WRITE_OPERATIONS=1`\nwrites the page again. If an operation isn't marked \"yes\", the store refuses it with the \
         status in the table. A refused\nrequest changes nothing.\n",
    );
    page.push_str(DIFFERENCES);
    type Section = (&'static str, &'static [Probe], &'static [(&'static str, &'static str)]);
    let sections: [Section; 4] = [
        ("Amazon S3", &amazon::OPERATIONS, &[]),
        ("Google Cloud Storage, JSON API", &google::JSON, &[]),
        ("Google Cloud Storage, XML API", &google::XML, &[("x-goog-api-version", "2")]),
        ("Azure Blob Storage", &azure::OPERATIONS, azure::HEADERS),
    ];
    for (title, probes, dialect) in sections {
        let rows: Vec<String> = probes.iter().map(|probe| probe.row(dialect)).collect();
        let done = rows.iter().filter(|row| row.ends_with("| yes |\n")).count();
        let _ = write!(page, "\n## {title}\n\n{done} of {}.\n\n", rows.len());
        page.push_str("| operation | request | |\n|---|---|---|\n");
        page.push_str(&rows.concat());
    }
    page
}

#[test]
fn the_page_of_operations_says_what_is_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("OPERATIONS.md");
    let found = page();
    if std::env::var_os("LANEWAY_WRITE_OPERATIONS").is_some() {
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    for (written, found) in written.lines().zip(found.lines()) {
        assert_eq!(written, found, "OPERATIONS.md is stale: LANEWAY_WRITE_OPERATIONS=1 writes it");
    }
    assert_eq!(written.len(), found.len(), "OPERATIONS.md is stale: LANEWAY_WRITE_OPERATIONS=1 writes it");
}
