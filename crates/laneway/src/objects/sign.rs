//! Signs URLs. A user without credentials can send a request with such a URL.

use std::time::{Duration, SystemTime};

use laneway_store::{Method, SignOptions, SignedUrl};

use super::call::{callable, within};
use crate::{Bucket, Error};

/// The default lifetime of a signed URL. `aws s3 presign` and `gcloud storage sign-url` have the same
/// default.
const EXPIRES: Duration = Duration::from_secs(3600);

/// A call that signs a URL of an object, made by [`Bucket::sign`].
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
    /// Signs a URL. Until it expires, anyone who has the URL can send requests of one method for the object.
    /// By default it allows reads for an hour: see [`method`](Sign::method) and [`expires`](Sign::expires).
    /// Signing sends no request to the store, and the object need not exist yet. The URL doesn't allow more
    /// than the credentials do.
    ///
    /// On S3, Laneway signs with the credentials in use (Signature Version 4). If they are temporary, the URL
    /// expires with them. On GCS, it signs with the key of a service account. For the machine's service
    /// account or an impersonated one, it asks Google's IAM service to sign, which requires
    /// `roles/iam.serviceAccountTokenCreator`. The credentials of a user's login can't sign.
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

    /// Sets the lifetime of the URL: whole seconds, from 1 s to 7 days. The default is an hour.
    pub fn expires(mut self, time: Duration) -> Self {
        self.options.expires = time;
        self
    }

    /// Adds a header to the signature. A request with this URL must send the header with exactly this value.
    /// This method can be called several times.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.options.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a query parameter, such as `versionId`, `generation` or `response-content-disposition`. This
    /// method can be called several times.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.options.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the time of the signature, at which the URL's lifetime begins. The default is the time of the
    /// call. With the same credentials, options and time, the call returns the same URL.
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
