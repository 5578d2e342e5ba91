//! JSON objects, put together field by field.
//!
//! `json!` makes code for each field, four times as much as is made here. This
//! file does not know what the fields mean.

use serde_json::{Map, Value};

/// What can stand in a JSON object.
pub trait Json {
    /// As JSON.
    fn json(&self) -> Value;
}

/// A JSON object, written as for `json!`; values inside are expressions.
macro_rules! object {
    ({ $($name:literal: $value:expr),* $(,)? }) => {{
        let mut map = serde_json::Map::new();
        $($crate::json::put(&mut map, $name, &$value);)*
        serde_json::Value::Object(map)
    }};
}
pub(crate) use object;

/// Puts a field into a JSON object.
#[inline(never)]
pub fn put(map: &mut Map<String, Value>, name: &str, value: &dyn Json) {
    map.insert(name.to_owned(), value.json());
}

/// Keeps those fields of a JSON object for which `keep` holds. Taking single ones
/// out of a map as it stands weighs 4 KB.
pub fn keep(map: &mut Map<String, Value>, keep: &mut dyn FnMut(&str, &Value) -> bool) {
    for (name, value) in std::mem::take(map) {
        if keep(&name, &value) {
            map.insert(name, value);
        }
    }
}

impl Json for Value {
    fn json(&self) -> Value {
        self.clone()
    }
}

impl Json for bool {
    fn json(&self) -> Value {
        Value::Bool(*self)
    }
}

impl Json for u32 {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for u64 {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for usize {
    fn json(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for str {
    fn json(&self) -> Value {
        Value::from(self)
    }
}

impl Json for String {
    fn json(&self) -> Value {
        self.as_str().json()
    }
}

impl<T: Json + ?Sized> Json for &T {
    fn json(&self) -> Value {
        (**self).json()
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::json)
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self) -> Value {
        let mut items = Vec::new();
        for item in self {
            items.push(item.json());
        }
        Value::Array(items)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn objects_are_those_of_json() {
        let (text, none) = (String::from("t\u{e9}\"\n"), None::<&str>);
        let ours = object!({
            "text": text,
            "word": "w",
            "none": none,
            "some": Some(&text),
            "list": vec!["a", "b"],
            "numbers": vec![u64::MAX, 0],
            "flag": true,
            "count": 7usize,
            "small": u32::MAX,
            "inside": object!({ "empty": Vec::<String>::new() }),
        });
        let theirs = json!({
            "text": text,
            "word": "w",
            "none": none,
            "some": Some(&text),
            "list": ["a", "b"],
            "numbers": [u64::MAX, 0],
            "flag": true,
            "count": 7,
            "small": u32::MAX,
            "inside": { "empty": [] },
        });
        assert_eq!(ours, theirs);
    }
}
