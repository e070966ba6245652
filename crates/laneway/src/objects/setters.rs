//! Setters that several calls share: for the properties of a new object, and for conditions on an object's
//! version or time.

/// Defines the setters of a call that has a field `options` of type
/// [`PutOptions`](laneway_store::PutOptions), or a box of it.
macro_rules! describable {
    ($verb:ty) => {
        impl $verb {
            /// Sets the object's `Content-Type`. By default, a copy keeps the type of its source, and any
            /// other object gets the type that the key's extension suggests.
            pub fn content_type(mut self, value: impl Into<String>) -> Self {
                self.options.content_type = Some(value.into());
                self
            }

            /// Sets several properties of the new object. If a field of `options` is empty, the value that
            /// was set before stays. Metadata and tags are added to those set before.
            pub fn options(mut self, options: ::laneway_store::PutOptions) -> Self {
                let given: &mut ::laneway_store::PutOptions =
                    ::std::borrow::BorrowMut::borrow_mut(&mut self.options);
                *given = options.or(::std::mem::take(given));
                self
            }

            /// Adds an entry to the object's user metadata.
            pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.options.metadata.insert(name.into(), value.into());
                self
            }
        }
    };
}

/// Defines the setters of conditions for a call that writes an object and has a field `options`.
macro_rules! conditional_write {
    ($verb:ty) => {
        impl $verb {
            /// Writes the object only if no object has this key. Otherwise the call fails with an error of
            /// kind [`AlreadyExists`](crate::ErrorKind::AlreadyExists) or
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_absent(mut self) -> Self {
                self.options.condition = ::laneway_store::Condition::Absent;
                self
            }

            /// Replaces the object only if this is its current version. If another write has replaced this
            /// version, the call fails with an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_version(mut self, version: &::laneway_store::Version) -> Self {
                self.options.condition = ::laneway_store::Condition::Matches(version.clone());
                self
            }
        }
    };
}

/// Defines the setters of conditions for a call that reads an object and has the fields `version`
/// (`Option<Version>`) and `unless` (`Option<Unless>`).
macro_rules! conditional_read {
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

pub(super) use {conditional_read, conditional_write, describable};
