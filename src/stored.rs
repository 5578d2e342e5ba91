//! Records to JSON and back, field by field.
//!
//! serde's derive does this too, at about 60 KB for the records of `state.rs`,
//! a tenth of what the whole binary may weigh. Here a record names its fields
//! once, and one walk along them serves both ways.
//!
//! This file does not know what is stored.

use crate::json::{Json as _, Map, Value};

/// The name of the field that is missing or of the wrong kind; empty when the
/// value itself is.
pub type Restored = Result<(), &'static str>;

/// A value that can be written into a state file and read back.
pub trait Stored {
    /// What is there before anything was read, and what a missing field means.
    fn blank() -> Self
    where
        Self: Sized;

    /// Whether a record without it is broken.
    fn needed(&self) -> bool {
        true
    }

    /// As JSON. Changes nothing; a record walks along its fields as if to read
    /// them.
    fn store(&mut self) -> Value;

    /// From JSON, into a blank one.
    ///
    /// # Errors
    /// As [`Restored`] says; what was read until then is of no use.
    fn restore(&mut self, value: &Value) -> Restored;
}

/// What is done with each field of a record, by its name.
pub type Each<'a> = &'a mut dyn FnMut(&'static str, &mut dyn Stored);

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
            fn blank() -> $name {
                $name { $($field: $crate::stored::Stored::blank(),)* }
            }

            fn store(&mut self) -> crate::json::Value {
                $crate::stored::store_fields(&mut |each| self.fields(each))
            }

            fn restore(&mut self, value: &crate::json::Value) -> $crate::stored::Restored {
                $crate::stored::restore_fields(value, &mut |each| self.fields(each))
            }
        }

        impl $name {
            fn fields(&mut self, each: $crate::stored::Each) {
                $(each(stringify!($field), &mut self.$field);)*
            }
        }
    )*};
}
pub(crate) use stored;

/// Declares names that are stored as words; the first one is the blank one.
macro_rules! words {
    ($($(#[$about:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in files and logs.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl $crate::stored::Stored for $name {
            fn blank() -> $name {
                $name::ALL[0]
            }

            fn needed(&self) -> bool {
                false
            }

            fn store(&mut self) -> $crate::json::Value {
                $crate::json::Json::json(&self.word())
            }

            fn restore(&mut self, value: &$crate::json::Value) -> $crate::stored::Restored {
                let named = |name: &&$name| value.as_str() == Some(name.word());
                $crate::stored::fill(self, $name::ALL.iter().find(named).copied())
            }
        }
    )*};
}
pub(crate) use words;

/// A record as JSON.
pub(crate) fn store_fields(walk: &mut dyn FnMut(Each)) -> Value {
    let mut map = Map::new();
    walk(&mut |name, field| {
        map.insert(name.to_owned(), field.store());
    });
    Value::Object(map)
}

/// A record from JSON.
pub(crate) fn restore_fields(value: &Value, walk: &mut dyn FnMut(Each)) -> Restored {
    let map = value.as_object().ok_or("")?;
    let mut result = Ok(());
    walk(&mut |name, field| {
        let read = match map.get(name) {
            Some(value) => field.restore(value),
            None if field.needed() => Err(""),
            None => Ok(()),
        };
        result = result.and(read.map_err(|inner| if inner.is_empty() { name } else { inner }));
    });
    result
}

/// Puts a value that was read in its place.
pub(crate) fn fill<T>(place: &mut T, read: Option<T>) -> Restored {
    *place = read.ok_or("")?;
    Ok(())
}

impl Stored for u64 {
    fn blank() -> u64 {
        0
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        self.json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        fill(self, value.as_u64())
    }
}

impl Stored for u32 {
    fn blank() -> u32 {
        0
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        self.json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        let number = value.as_u64();
        fill(self, number.and_then(|number| u32::try_from(number).ok()))
    }
}

impl Stored for bool {
    fn blank() -> bool {
        false
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        Value::Bool(*self)
    }

    fn restore(&mut self, value: &Value) -> Restored {
        fill(self, value.as_bool())
    }
}

impl Stored for String {
    fn blank() -> String {
        String::new()
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        self.json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        fill(self, value.as_str().map(str::to_owned))
    }
}

impl<T: Stored> Stored for Option<T> {
    fn blank() -> Option<T> {
        None
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        self.as_mut().map_or(Value::Null, T::store)
    }

    fn restore(&mut self, value: &Value) -> Restored {
        if value.is_null() {
            return Ok(());
        }
        self.get_or_insert_with(T::blank).restore(value)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn blank() -> Vec<T> {
        Vec::new()
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        let mut items = Vec::new();
        for item in self {
            items.push(item.store());
        }
        Value::Array(items)
    }

    fn restore(&mut self, value: &Value) -> Restored {
        for item in value.as_array().ok_or("")? {
            let mut place = T::blank();
            let read = place.restore(item);
            self.push(place);
            read?;
        }
        Ok(())
    }
}
