//! The macro that defines the setters of requests.

/// Defines methods that set fields of a request. The method of `name: Type` takes the field's value. For an
/// optional field, that of `name: some Type` takes a `Type`, and that of `name: into Type` takes a value that
/// converts into a `Type`.
macro_rules! setters {
    () => {};
    ($field:ident: some $value:ty $(, $($rest:tt)*)?) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: $value) -> Self {
            self.$field = Some($field);
            self
        }
        setters!($($($rest)*)?);
    };
    ($field:ident: into $value:ty $(, $($rest:tt)*)?) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$value>) -> Self {
            self.$field = Some($field.into());
            self
        }
        setters!($($($rest)*)?);
    };
    ($field:ident: $value:ty $(, $($rest:tt)*)?) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $field(mut self, $field: $value) -> Self {
            self.$field = $field;
            self
        }
        setters!($($($rest)*)?);
    };
}

pub(super) use setters;
