//! What a new object is to be besides its bytes: the same words for every verb that writes one.

/// The setters of a verb that has a field `options` of [`PutOptions`](laneway_store::PutOptions).
macro_rules! describable {
    ($verb:ty) => {
        impl $verb {
            /// Its `Content-Type`; without one a copy has its source's, and for anything else it is guessed from the key's extension.
            pub fn content_type(mut self, value: impl Into<String>) -> Self {
                self.options.content_type = Some(value.into());
                self
            }

            /// Describes the new object. A field that `options` leaves empty keeps what was set before, and metadata and tags are added.
            pub fn options(mut self, options: ::laneway_store::PutOptions) -> Self {
                self.options = options.or(self.options);
                self
            }

            /// Adds to the user's own metadata.
            pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.options.metadata.insert(name.into(), value.into());
                self
            }
        }
    };
}

/// The setters of what such a verb finds before it writes.
macro_rules! conditional {
    ($verb:ty) => {
        impl $verb {
            /// Only where there is no such object. Where there is one, that is an error of kind
            /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) or [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_absent(mut self) -> Self {
                self.options.condition = ::laneway_store::Condition::Absent;
                self
            }

            /// Only over this state of the object: one that was replaced meanwhile is an error of kind
            /// [`Precondition`](crate::ErrorKind::Precondition).
            pub fn if_version(mut self, version: &::laneway_store::Version) -> Self {
                self.options.condition = ::laneway_store::Condition::Matches(version.clone());
                self
            }
        }
    };
}

pub(super) use {conditional, describable};
