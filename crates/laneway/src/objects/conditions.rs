//! Setters for conditions on an object's version or time, which all calls that read an object share.

/// Defines the setters of a call that has the fields `version` (`Option<Version>`) and `unless`
/// (`Option<Unless>`).
macro_rules! conditional {
    ($verb:ty) => {
        impl $verb {
            /// Reads the object only if this is its current version. If the object was replaced, the call
            /// fails with an error of kind [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_version(mut self, version: &::laneway_store::Version) -> Self {
                self.version = Some(version.clone());
                self
            }

            /// Reads the object only if its current version isn't this one, which the caller already has. If
            /// it is this version, the call fails with an error of kind
            /// [`NotModified`](crate::ErrorKind::NotModified), and the store sends no bytes. The condition
            /// takes no additional request: Laneway sends `ifGenerationNotMatch` to GCS and `If-None-Match`
            /// to S3.
            pub fn unless_version(mut self, version: &::laneway_store::Version) -> Self {
                self.unless = Some(::laneway_store::Unless::Version(version.clone()));
                self
            }

            /// Reads the object only if it changed after this time. If it didn't change, the call fails with
            /// an error of kind [`NotModified`](crate::ErrorKind::NotModified), and the store sends no bytes.
            /// If [`unless_version`](Self::unless_version) is also set, this time is ignored (RFC 9110,
            /// 13.1.3).
            ///
            /// This time and the object's time are rounded down to whole seconds, as in `If-Modified-Since`.
            /// So a change within the same second goes unnoticed. A condition on a version is more precise.
            /// The object's time comes from the store's clock. On S3 the request carries `If-Modified-Since`.
            /// GCS's JSON API has no such condition, so there Laneway first requests the object's metadata,
            /// and a change of the metadata also counts as a change.
            pub fn if_modified_since(mut self, time: ::std::time::SystemTime) -> Self {
                if !matches!(self.unless, Some(::laneway_store::Unless::Version(_))) {
                    self.unless = Some(::laneway_store::Unless::ModifiedSince(time));
                }
                self
            }
        }
    };
}

pub(super) use conditional;
