//! Records to JSON and back, field by field.
//!
//! serde's derive does this too, at about 60 KB for the records of `state.rs`,
//! a tenth of what the whole binary may weigh. Here a record names its fields
//! once, and both ways follow from that.
//!
//! This file does not know what is stored.

use serde_json::{Map, Value};

/// A value that can be written into a state file and read back.
pub trait Stored: Sized {
    /// As JSON.
    fn store(&self) -> Value;

    /// From JSON.
    ///
    /// # Errors
    /// The name of the field that is missing or of the wrong kind; empty when
    /// the value itself is.
    fn restore(value: Value) -> Result<Self, &'static str>;

    /// What a missing field means, if it means anything.
    fn missing() -> Option<Self> {
        None
    }
}

/// Declares a record, and how it is stored.
macro_rules! stored {
    ($($(#[$about:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* pub $field:ident: $kind:ty,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl $crate::stored::Stored for $name {
            fn store(&self) -> serde_json::Value {
                let mut map = serde_json::Map::new();
                $(map.insert(stringify!($field).to_owned(), self.$field.store());)*
                serde_json::Value::Object(map)
            }

            fn restore(value: serde_json::Value) -> Result<$name, &'static str> {
                let serde_json::Value::Object(mut map) = value else { return Err("") };
                Ok($name {
                    $($field: $crate::stored::take(&mut map, stringify!($field))?,)*
                })
            }
        }
    )*};
}
pub(crate) use stored;

/// Takes one field out of a record.
pub(crate) fn take<T: Stored>(
    map: &mut Map<String, Value>,
    name: &'static str,
) -> Result<T, &'static str> {
    let field = match map.remove(name) {
        Some(value) => T::restore(value),
        None => T::missing().ok_or(""),
    };
    field.map_err(|inner| if inner.is_empty() { name } else { inner })
}

impl Stored for u64 {
    fn store(&self) -> Value {
        Value::from(*self)
    }

    fn restore(value: Value) -> Result<u64, &'static str> {
        value.as_u64().ok_or("")
    }

    fn missing() -> Option<u64> {
        Some(0)
    }
}

impl Stored for u32 {
    fn store(&self) -> Value {
        Value::from(*self)
    }

    fn restore(value: Value) -> Result<u32, &'static str> {
        value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .ok_or("")
    }

    fn missing() -> Option<u32> {
        Some(0)
    }
}

impl Stored for bool {
    fn store(&self) -> Value {
        Value::Bool(*self)
    }

    fn restore(value: Value) -> Result<bool, &'static str> {
        value.as_bool().ok_or("")
    }

    fn missing() -> Option<bool> {
        Some(false)
    }
}

impl Stored for String {
    fn store(&self) -> Value {
        Value::String(self.clone())
    }

    fn restore(value: Value) -> Result<String, &'static str> {
        match value {
            Value::String(text) => Ok(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => Err(""),
        }
    }

    fn missing() -> Option<String> {
        Some(String::new())
    }
}

impl<T: Stored> Stored for Option<T> {
    fn store(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::store)
    }

    fn restore(value: Value) -> Result<Option<T>, &'static str> {
        if value.is_null() {
            Ok(None)
        } else {
            T::restore(value).map(Some)
        }
    }

    fn missing() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn store(&self) -> Value {
        Value::Array(self.iter().map(T::store).collect())
    }

    fn restore(value: Value) -> Result<Vec<T>, &'static str> {
        let Value::Array(items) = value else {
            return Err("");
        };
        items.into_iter().map(T::restore).collect()
    }

    fn missing() -> Option<Vec<T>> {
        Some(Vec::new())
    }
}
