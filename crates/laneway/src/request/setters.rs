//! The setters of requests, which are one sentence each.

/// Methods that set fields of the type they stand in: `name: Type` takes a value, `name: some Type` one of a field that is optional, and
/// `name: into Type` what becomes one.
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
