//! JSON as Go's standard library prints it: two spaces of indent, `<`, `>` and
//! `&` escaped, broken bytes as `\ufffd`. Does not know what is printed.

use std::io;

/// A value to print.
#[derive(Clone)]
pub enum Json {
    /// `null`, which is also Go's nil slice.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it stands.
    Number(String),
    /// A string; any bytes.
    Text(Vec<u8>),
    /// An array.
    List(Vec<Json>),
    /// An object, in this order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A string.
    pub fn text(text: impl Into<Vec<u8>>) -> Json {
        Json::Text(text.into())
    }

    /// A Go struct: keys in the given order.
    pub fn ordered(pairs: Vec<(&str, Json)>) -> Json {
        Json::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }

    /// A Go map: keys sorted.
    pub fn sorted(mut pairs: Vec<(&str, Json)>) -> Json {
        pairs.sort_by_key(|(key, _)| *key);
        Json::ordered(pairs)
    }

    /// A value read from a file, keys sorted as Go sorts a map.
    pub fn parse(bytes: &[u8]) -> io::Result<Json> {
        let value = serde_json::from_slice::<serde_json::Value>(bytes);
        value
            .map(Json::from)
            .map_err(|e| io::Error::other(e.to_string()))
    }

    /// Indented text with the newline at the end.
    pub fn printed(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out, 0);
        out.push(b'\n');
        out
    }

    fn write(&self, out: &mut Vec<u8>, depth: usize) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(yes) => out.extend_from_slice(yes.to_string().as_bytes()),
            Json::Number(number) => out.extend_from_slice(number.as_bytes()),
            Json::Text(text) => quote(out, text),
            Json::List(items) if items.is_empty() => out.extend_from_slice(b"[]"),
            Json::Object(pairs) if pairs.is_empty() => out.extend_from_slice(b"{}"),
            Json::List(items) => {
                out.push(b'[');
                for (n, item) in items.iter().enumerate() {
                    next_line(out, n, depth + 1);
                    item.write(out, depth + 1);
                }
                last_line(out, depth);
                out.push(b']');
            }
            Json::Object(pairs) => {
                out.push(b'{');
                for (n, (key, value)) in pairs.iter().enumerate() {
                    next_line(out, n, depth + 1);
                    quote(out, key.as_bytes());
                    out.extend_from_slice(b": ");
                    value.write(out, depth + 1);
                }
                last_line(out, depth);
                out.push(b'}');
            }
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        use serde_json::Value;
        match value {
            Value::Null => Json::Null,
            Value::Bool(yes) => Json::Bool(yes),
            Value::Number(number) => Json::Number(number.to_string()),
            Value::String(text) => Json::text(text),
            Value::Array(items) => Json::List(items.into_iter().map(Json::from).collect()),
            Value::Object(pairs) => {
                let mut pairs: Vec<_> = pairs
                    .into_iter()
                    .map(|(key, value)| (key, Json::from(value)))
                    .collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                Json::Object(pairs)
            }
        }
    }
}

fn next_line(out: &mut Vec<u8>, n: usize, depth: usize) {
    if n > 0 {
        out.push(b',');
    }
    last_line(out, depth);
}

fn last_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * depth));
}

fn quote(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\u{8}' => out.extend_from_slice(b"\\b"),
                '\u{c}' => out.extend_from_slice(b"\\f"),
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                    out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for _ in chunk.invalid() {
            out.extend_from_slice(b"\\ufffd");
        }
    }
    out.push(b'"');
}
