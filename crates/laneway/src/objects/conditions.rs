//! Conditions on the version of an object: the same setters for all verbs that read one.

/// Makes the setters of a verb with the fields `version`, an `Option<Version>`, and `unless`, an
/// `Option<Unless>`.
macro_rules! conditional {
    ($verb:ty) => {
        impl $verb {
            /// Reads only this version. If the object was replaced, the call fails with an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_version(mut self, version: &::laneway_store::Version) -> Self {
                self.version = Some(version.clone());
                self
            }

            /// Reads the object unless it still has this version, which the caller has already. If it has,
            /// the call fails with an error of kind [`NotModified`](crate::ErrorKind::NotModified), and the
            /// store sends no bytes. This takes one request, with `ifGenerationNotMatch` on GCS and
            /// `If-None-Match` on S3.
            pub fn unless_version(mut self, version: &::laneway_store::Version) -> Self {
                self.unless = Some(::laneway_store::Unless::Version(version.clone()));
                self
            }

            /// Reads only if the object changed after this time. If it didn't, the call fails with an error
            /// of kind [`NotModified`](crate::ErrorKind::NotModified), and the store sends no bytes. With
            /// [`unless_version`](Self::unless_version), the time is ignored (RFC 9110, 13.1.3).
            ///
            /// Both times are cut to whole seconds, as in `If-Modified-Since`, so a change within the same
            /// second goes unnoticed. A version is more precise. An object's time comes from the store's
            /// clock. On S3 the request carries `If-Modified-Since`. GCS's JSON API has no such condition, so
            /// Laneway requests the object's metadata first. There, a change of the metadata also counts.
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
