//! The setters of requests.

/// Makes methods that set fields of a request. `name: Type` takes a value, `name: some Type` the value of an
/// optional field, and `name: into Type` a value that converts into it.
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
