//! Signed URLs, for users without credentials.

use std::time::{Duration, SystemTime};

use laneway_store::{Method, SignOptions, SignedUrl};

use super::call::{callable, within};
use crate::{Bucket, Error};

/// The default lifetime of a URL, the same as that of `aws s3 presign` and `gcloud storage sign-url`.
const EXPIRES: Duration = Duration::from_secs(3600);

/// Signs a URL of an object; made by [`Bucket::sign`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Sign {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    options: SignOptions,
    now: Option<SystemTime>,
}

impl Bucket {
    /// Signs a URL. Until the URL expires, anyone who has it may make one kind of request for the object. By
    /// default it allows reads for an hour: see [`method`](Sign::method) and [`expires`](Sign::expires).
    /// Signing sends no request to the store. The object need not exist yet, and the URL allows nothing that
    /// the credentials don't.
    ///
    /// The credentials in use sign the URLs of S3 (Signature Version 4). If the credentials are temporary,
    /// the URL expires with them. On GCS, a service account's key signs URLs. For the machine's account or an
    /// impersonated one, IAM signs them (`roles/iam.serviceAccountTokenCreator`). A person's login can't
    /// sign.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let key = laneway::AccessKey::new("laneway", "lanewaysecret");
    /// # let client = laneway::Client::builder().access_key(key).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use std::time::Duration;
    ///
    /// bucket.put("notes.txt", "one line\n").await?;
    /// let signed = bucket.sign("notes.txt").expires(Duration::from_secs(600)).await?;
    /// assert!(signed.url.contains("/lake/notes.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"));
    /// assert_eq!(signed.ends_early, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign(&self, key: &str) -> Sign {
        let options = SignOptions { expires: EXPIRES, ..SignOptions::default() };
        Sign { bucket: self.clone(), deadline: None, key: key.to_owned(), options, now: None }
    }
}

callable!(Sign, SignedUrl);

impl Sign {
    /// Sets the method of the request that the URL allows. The default is [`Method::Get`].
    pub fn method(mut self, method: Method) -> Self {
        self.options.method = method;
        self
    }

    /// Sets the lifetime, from 1 s to 7 days, in whole seconds. The default is an hour.
    pub fn expires(mut self, time: Duration) -> Self {
        self.options.expires = time;
        self
    }

    /// Adds a header that the request with this URL must send with exactly this value. May be called several
    /// times.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.options.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a query parameter, such as `versionId`, `generation` or `response-content-disposition`. May be
    /// called several times.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.options.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Signs for this time instead of the time of the call. Repeated with the same key and time, it returns
    /// the same URL.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.now = Some(time);
        self
    }

    async fn run(self) -> Result<SignedUrl, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            let now = self.now.unwrap_or_else(SystemTime::now);
            Ok(store.sign(&id, &self.options, now).await?)
        })
        .await
    }
}
