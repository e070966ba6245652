//! Setters for the properties of a new object, which all calls that write an object share.

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

/// Defines the setters of conditions for a call that has a field `options`.
macro_rules! conditional {
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

pub(super) use {conditional, describable};
