//! TOML to JSON values, as far as agent-deck's `config.toml` needs it.
//!
//! Numbers, dates and times become 0: nobody here asks for them, and a text they
//! are not. This file does not know what is configured.

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// A text that is not TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Line of the first fault, from 1.
    pub line: usize,
    /// What is wrong there, without any of the text.
    pub why: &'static str,
}

/// Reads a whole text.
///
/// # Errors
/// With the first fault.
pub fn table(text: &str) -> Result<Map<String, Value>, Broken> {
    match DeTable::parse(text) {
        Ok(table) => Ok(object(table.get_ref())),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.as_bytes().iter().take(at);
            Err(Broken {
                line: 1 + before.filter(|&&byte| byte == b'\n').count(),
                why: "not TOML",
            })
        }
    }
}

fn object(table: &DeTable) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, value) in table {
        object.insert(name.get_ref().to_string(), json(value.get_ref()));
    }
    object
}

fn json(value: &DeValue) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(object(table)),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => Value::from(0),
    }
}

#[cfg(test)]
#[path = "toml_tests.rs"]
mod tests;
