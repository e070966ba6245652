//! The properties of a new object besides its bytes: the same setters for every verb that writes one.

/// Makes the setters of a verb that has a field `options` of type [`PutOptions`](laneway_store::PutOptions).
macro_rules! describable {
    ($verb:ty) => {
        impl $verb {
            /// Sets its `Content-Type`. The default is the source's for a copy, and a guess from the key's
            /// extension otherwise.
            pub fn content_type(mut self, value: impl Into<String>) -> Self {
                self.options.content_type = Some(value.into());
                self
            }

            /// Describes the new object. A field that `options` leaves empty keeps what was set before, and metadata and tags are added.
            pub fn options(mut self, options: ::laneway_store::PutOptions) -> Self {
                self.options = options.or(self.options);
                self
            }

            /// Adds an entry to the user metadata.
            pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.options.metadata.insert(name.into(), value.into());
                self
            }
        }
    };
}

/// Makes the setters of conditions for such a verb.
macro_rules! conditional {
    ($verb:ty) => {
        impl $verb {
            /// Writes only if there is no such object. If there is one, that is an error of kind
            /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) or
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_absent(mut self) -> Self {
                self.options.condition = ::laneway_store::Condition::Absent;
                self
            }

            /// Replaces only this version of the object. If it was replaced meanwhile, that is an error of
            /// kind [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_version(mut self, version: &::laneway_store::Version) -> Self {
                self.options.condition = ::laneway_store::Condition::Matches(version.clone());
                self
            }
        }
    };
}

pub(super) use {conditional, describable};
