//! In which states an object is to be read: the same words for the verbs that read one.

/// The setters of a verb that has the fields `version`, an `Option<Version>`, and `unless`, an `Option<Unless>`.
macro_rules! conditional {
    ($verb:ty) => {
        impl $verb {
            /// Only in this state: an object that was replaced is an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_version(mut self, version: &::laneway_store::Version) -> Self {
                self.version = Some(version.clone());
                self
            }

            /// Only if it is no longer in this state, which the caller has: as long as it is, that is an error of kind
            /// [`NotModified`](crate::ErrorKind::NotModified), and no byte is moved. One request: GCS is asked by
            /// `ifGenerationNotMatch`, S3 by `If-None-Match`.
            pub fn unless_version(mut self, version: &::laneway_store::Version) -> Self {
                self.unless = Some(::laneway_store::Unless::Version(version.clone()));
                self
            }

            /// Only if it has changed after this time: if it hasn't, that is an error of kind
            /// [`NotModified`](crate::ErrorKind::NotModified), and no byte is moved. Beside
            /// [`unless_version`](Self::unless_version) the time doesn't count (RFC 9110, 13.1.3).
            ///
            /// Fractions of seconds are cut off on both sides, as `If-Modified-Since` knows none, so that a change within the same
            /// second isn't seen: a version tells more. It is the store's clock that dates objects. S3 is asked by
            /// `If-Modified-Since`; GCS's JSON API has no such condition, so there the object's description is asked for first, and
            /// its time is that of the last change of its metadata.
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
