//! JSON: values, objects put together field by field, and their text.
//!
//! What serde_json makes of this weighs 25 KB more; ours is held against it in
//! tests. This file does not know what the fields mean.

use std::fmt;

mod read;

pub use read::{NotJson, read, read_first};

/// A JSON value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Fields by their names.
    Object(Map),
}

impl Value {
    /// A field, when it is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// `true` or `false`, when it is one of them.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(value) = self {
            return Some(*value);
        }
        None
    }

    /// The number, when it is a whole one that fits.
    pub fn as_u64(&self) -> Option<u64> {
        if let Value::Number(digits) = self {
            return digits.parse().ok();
        }
        None
    }

    /// The text, when it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self {
            return Some(text);
        }
        None
    }

    /// The list, when it is one.
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        if let Value::Array(items) = self {
            return Some(items);
        }
        None
    }

    /// The object, when it is one.
    pub fn as_object(&self) -> Option<&Map> {
        if let Value::Object(map) = self {
            return Some(map);
        }
        None
    }

    /// The object, when it is one, to be changed.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Value::Object(map) = self {
            return Some(map);
        }
        None
    }

    /// Puts its text behind `into`: on one line, or, at a depth, on lines of
    /// their own that are indented as deep.
    fn print(&self, depth: Option<usize>, into: &mut String) {
        let inner = depth.map(|depth| depth + 1);
        match self {
            Value::Null => into.push_str("null"),
            Value::Bool(value) => into.push_str(if *value { "true" } else { "false" }),
            Value::Number(digits) => into.push_str(digits),
            Value::String(text) => quote(text, into),
            Value::Array(items) => {
                into.push('[');
                for (at, item) in items.iter().enumerate() {
                    begin(at, inner, into);
                    item.print(inner, into);
                }
                end(items.is_empty(), depth, ']', into);
            }
            Value::Object(map) => {
                into.push('{');
                for (at, (name, value)) in map.0.iter().enumerate() {
                    begin(at, inner, into);
                    quote(name, into);
                    into.push_str(if inner.is_some() { ": " } else { ":" });
                    value.print(inner, into);
                }
                end(map.is_empty(), depth, '}', into);
            }
        }
    }
}

/// On one line; with `{:#}` on many.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.print(f.alternate().then_some(0), &mut text);
        f.write_str(&text)
    }
}

/// What stands before an item.
fn begin(at: usize, depth: Option<usize>, into: &mut String) {
    if at > 0 {
        into.push(',');
    }
    line(depth, into);
}

/// What stands behind all items.
fn end(empty: bool, depth: Option<usize>, close: char, into: &mut String) {
    if !empty {
        line(depth, into);
    }
    into.push(close);
}

fn line(depth: Option<usize>, into: &mut String) {
    if let Some(depth) = depth {
        into.push('\n');
        into.push_str(&"  ".repeat(depth));
    }
}

fn quote(text: &str, into: &mut String) {
    into.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => into.extend(['\\', c]),
            '\u{8}' => into.push_str("\\b"),
            '\u{c}' => into.push_str("\\f"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            c if c < ' ' => into.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => into.push(c),
        }
    }
    into.push('"');
}

/// The fields of an object, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map(Vec<(String, Value)>);

impl Map {
    /// Without fields.
    pub fn new() -> Map {
        Map::default()
    }

    /// Where a field is, or where it would be.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// That of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.place(name).ok()?;
        Some(&self.0[at].1)
    }

    /// That of a name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.place(name).ok()?;
        Some(&mut self.0[at].1)
    }

    /// Puts a value under a name, in place of one that was there.
    pub fn insert(&mut self, name: String, value: Value) {
        match self.place(&name) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    /// Keeps those fields for which `keep` holds.
    pub fn retain(&mut self, keep: &mut dyn FnMut(&str, &Value) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    /// All, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// All without their names, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What can stand in a JSON object.
pub trait Json {
    /// As JSON.
    fn json(&self) -> Value;
}

/// A JSON object, as it is written; values inside are expressions.
macro_rules! object {
    ({ $($name:literal: $value:expr),* $(,)? }) => {{
        let mut map = $crate::json::Map::new();
        $($crate::json::put(&mut map, $name, &$value);)*
        $crate::json::Value::Object(map)
    }};
}
pub(crate) use object;

/// Puts a field into a JSON object.
#[inline(never)]
pub fn put(map: &mut Map, name: &str, value: &dyn Json) {
    map.insert(name.to_owned(), value.json());
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
        u64::from(*self).json()
    }
}

impl Json for u64 {
    fn json(&self) -> Value {
        Value::Number(self.to_string())
    }
}

impl Json for usize {
    fn json(&self) -> Value {
        Value::Number(self.to_string())
    }
}

impl Json for str {
    fn json(&self) -> Value {
        Value::String(self.to_owned())
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

/// What serde_json holds, as ours.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn ours(theirs: &serde_json::Value) -> Value {
    read(theirs.to_string().as_bytes()).unwrap()
}

/// Ours as serde_json holds it.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) fn theirs(ours: &Value) -> serde_json::Value {
    serde_json::from_str(&ours.to_string()).unwrap()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn objects_are_those_of_serde_json() {
        let (text, none) = (
            String::from("t\u{e9}\"\\\n\r\t\u{8}\u{c}\u{1}\u{7f}"),
            None::<&str>,
        );
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
        assert_eq!(ours.to_string(), theirs.to_string());
        assert_eq!(format!("{ours:#}"), format!("{theirs:#}"));
        assert_eq!(super::ours(&theirs), ours);
    }
}
