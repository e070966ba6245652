//! The macro that defines the setters of requests.

/// Defines methods that set fields of a request. For `name: Type`, the method takes the field's value. For
/// `name: some Type`, the field is optional and the method takes a `Type`. For `name: into Type`, the field
/// is optional and the method takes any value that converts into a `Type`.
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
