//! Settings as people write them, and what is no TOML.

use serde_json::json;
use toml::de::{DeTable, DeValue};

use super::*;
use crate::json::theirs;

/// The text's table, as serde_json holds it.
fn read(text: &str) -> serde_json::Value {
    theirs(&Value::Object(table(text).unwrap()))
}

const SETTINGS: &str = r#"
# agent-deck
default_tool = "claude" # a comment
theme = 'dark'

[claude]
env_file = "~/.claude.env"
dangerous_mode = false
config_dir = "~/.claude"

[shell]
env_files = [
  ".env", # the project's
  '~/common.env',
]
init_script = """
export A=1
export B="2"
"""
ignore_missing_env_files = true

[conductor]
dir = "~/conductors"
heartbeat_interval = 15

[conductor.telegram]
token = "123:abc"

[conductors.ops.claude]
env_file = "$HOME/tg/ops.env"
env = { TELEGRAM_STATE_DIR = "/srv/ops", A = 'x"y' }

[conductors."night shift".claude.env]
TELEGRAM_STATE_DIR = "/srv/night"

[groups."work/backend".claude]
env.TELEGRAM_STATE_DIR = "/srv/b"
env."A B" = "c"

[groups.work.claude]
plugins = ["a", "b"]

[tools.aider]
command = "aider"
busy_patterns = [["x"], ["y", "z"]]

[[hooks]]
name = "one"
[hooks.when]
at = 07:32:00
[[hooks]]
name = "two"
"#;

#[test]
fn settings_are_read() {
    let want = json!({
        "default_tool": "claude",
        "theme": "dark",
        "claude": {"env_file": "~/.claude.env", "dangerous_mode": false, "config_dir": "~/.claude"},
        "shell": {
            "env_files": [".env", "~/common.env"],
            "init_script": "export A=1\nexport B=\"2\"\n",
            "ignore_missing_env_files": true,
        },
        "conductor": {
            "dir": "~/conductors", "heartbeat_interval": 0, "telegram": {"token": "123:abc"},
        },
        "conductors": {
            "ops": {"claude": {
                "env_file": "$HOME/tg/ops.env",
                "env": {"TELEGRAM_STATE_DIR": "/srv/ops", "A": "x\"y"},
            }},
            "night shift": {"claude": {"env": {"TELEGRAM_STATE_DIR": "/srv/night"}}},
        },
        "groups": {
            "work/backend": {"claude": {"env": {"TELEGRAM_STATE_DIR": "/srv/b", "A B": "c"}}},
            "work": {"claude": {"plugins": ["a", "b"]}},
        },
        "tools": {"aider": {"command": "aider", "busy_patterns": [["x"], ["y", "z"]]}},
        "hooks": [{"name": "one", "when": {"at": 0}}, {"name": "two"}],
    });
    assert_eq!(read(SETTINGS), want);
    let windows = SETTINGS.replace('\n', "\r\n");
    let read = read(&windows);
    assert_eq!(read["conductors"], want["conductors"]);
    assert_eq!(
        read["shell"]["init_script"],
        "export A=1\r\nexport B=\"2\"\r\n"
    );
}

#[test]
fn values_are_read() {
    for (text, want) in [
        (
            r#"a = "\b\t\n\f\r\e\"\\\x41\u00e9\U0001F600""#,
            json!("\u{8}\t\n\u{c}\r\u{1b}\"\\Aé😀"),
        ),
        (r"a = 'C:\x'", json!(r"C:\x")),
        ("a = \"\"\"x\\\n   \n  y\\  \r\n z\"\"\"", json!("xyz")),
        ("a = \"\"\"\r\nx\"\"y\"\"\"\"\"", json!("x\"\"y\"\"")),
        ("a = '''\n'x\\''''", json!("'x\\'")),
        ("a = \"\"", json!("")),
        ("a = \"\"\"\"\"\"", json!("")),
        ("a = true", json!(true)),
        ("\u{feff}a = false#c", json!(false)),
        ("a = []", json!([])),
        (
            "a = [ 1, [true,], # c\n { b = 'c' } ]",
            json!([0, [true], {"b": "c"}]),
        ),
        ("a = {}", json!({})),
        (
            "a = { b.c = 'x', b.d = 'y', # c\n 'e' = 'z', }",
            json!({"b": {"c": "x", "d": "y"}, "e": "z"}),
        ),
        (
            "a.b.\"c d\" = 'x'\na.e = 'y'",
            json!({"b": {"c d": "x"}, "e": "y"}),
        ),
        ("[ a . b ]\nc='x'", json!({"b": {"c": "x"}})),
        (
            "[a.b.c]\nx='1'\n[a]\ny='2'\n[a.b]\nz='3'",
            json!({"b": {"c": {"x": "1"}, "z": "3"}, "y": "2"}),
        ),
        (
            "[a]\nb.c = 'x'\n[a.b.d]\ne = 'y'",
            json!({"b": {"c": "x", "d": {"e": "y"}}}),
        ),
        (
            "[[a]]\n[[a.b]]\nc = 'x'\n[[a.b]]\n[[a]]",
            json!([{"b": [{"c": "x"}, {}]}, {}]),
        ),
    ] {
        assert_eq!(read(text)["a"], want, "{text:?}");
    }
    for number in [
        "42",
        "-17",
        "+1_000",
        "0xdead_BEEF",
        "0o755",
        "0b1010",
        "3.14",
        "-2e-3",
        "6.62E+34",
        "inf",
        "-nan",
        "1979-05-27",
        "1979-05-27T07:32:00Z",
        "1979-05-27 07:32:00.5-07:00",
        "07:32:00",
    ] {
        let text = format!("a = {number} # c\nb = ' '");
        assert_eq!(read(&text)["a"], json!(0), "{number}");
    }
    assert!(table("").unwrap().is_empty() && table("\n \t# c").unwrap().is_empty());
}

#[test]
fn what_is_broken_names_its_line() {
    for (text, line, why) in [
        ("a = 1\nb", 2, "no = behind a key"),
        ("a =", 1, NO_VALUE),
        ("a =\n'x'", 1, NO_VALUE),
        ("\n\na = ~/x", 3, NO_VALUE),
        ("a = yes", 1, NO_VALUE),
        ("a = True", 1, NO_VALUE),
        ("a = 12x3", 1, NO_VALUE),
        ("= 1", 1, NO_KEY),
        ("a. = 1", 1, NO_KEY),
        ("é = 1", 1, NO_KEY),
        ("a = 'x' b = 'y'", 1, MORE),
        ("[a] b = 1", 1, MORE),
        ("[a\nb = 1", 1, OPEN),
        ("[[a]\n", 1, OPEN),
        ("[]", 1, NO_KEY),
        ("a = \"x\ny\"", 1, OPEN),
        ("a = 'x", 1, OPEN),
        ("a = '''x\n\n", 3, OPEN),
        ("a = \"\"\"x\"\"", 1, OPEN),
        ("a = [1\n2]", 2, OPEN),
        ("a = [1,, 2]", 1, NO_VALUE),
        ("a = [1", 1, OPEN),
        ("a = { b = 1 c = 2 }", 1, OPEN),
        ("a = { b = 1", 1, OPEN),
        ("a = \"\\d\"", 1, ESCAPE),
        ("a = \"\\u12\"", 1, ESCAPE),
        ("a = \"\\ud800\"", 1, ESCAPE),
        ("a = \"\\u+123\"", 1, ESCAPE),
        ("a = 'x\u{1}'", 1, CONTROL),
        ("# x\u{7f}\n", 1, CONTROL),
        ("a = 1\rb = 2", 1, CONTROL),
        ("\"a\\u0000\" = 1", 1, CONTROL),
    ] {
        let broken = table(text).unwrap_err();
        assert_eq!((broken.line, broken.why), (line, why), "{text:?}");
    }
}

#[test]
fn nothing_is_defined_twice() {
    for (text, line) in [
        ("a = 1\na = 2", 2),
        ("a = 1\n\"a\" = 2", 2),
        ("a = 1\na.b = 2", 2),
        ("a.b = 1\na = 2", 2),
        ("a.b = 1\na.b = 2", 2),
        ("[a]\n[b]\n[a]", 3),
        ("[a]\nb = 1\n[a.b]", 3),
        ("a = {}\n[a]", 2),
        ("a = {}\na.b = 1", 2),
        ("a = {}\n[a.b]", 2),
        ("a = []\n[[a]]", 2),
        ("a = [{}]\n[a.b]", 2),
        ("[[a]]\n[a]", 2),
        ("[a]\n[[a]]", 2),
        ("[a.b]\n[[a]]", 2),
        ("[a]\nb.c = 1\n[a.b]", 3),
        ("[a.b.c]\n[a]\nb.d = 1", 3),
        ("a = { b = 1, b = 2 }", 1),
        ("a = { b = {}, b.c = 1 }", 1),
    ] {
        let broken = table(text).unwrap_err();
        assert_eq!((broken.line, broken.why), (line, TWICE), "{text:?}");
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("[", "]"), ("{a=", "}"), ("[{a.b=", "}]")] {
        let text = format!("a = {}1{}", open.repeat(5), close.repeat(5));
        assert!(table(&text).is_ok(), "{text}");
        for close in [close, ""] {
            let text = format!("a = {}1{}", open.repeat(50_000), close.repeat(50_000));
            assert_eq!(table(&text).unwrap_err().why, DEEP);
        }
    }
    let names = "a.".repeat(50_000);
    assert_eq!(table(&format!("{names}a = 1")).unwrap_err().why, DEEP);
    assert_eq!(table(&format!("[{names}a]")).unwrap_err().why, DEEP);
}

#[test]
fn every_cut_and_every_odd_byte_ends_in_an_answer() {
    for at in 0..SETTINGS.len() {
        let _ = table(&SETTINGS[..at]);
        for odd in ["\"", "'", "[", "}", "=", "\\", "\n", "é", "."] {
            let _ = table(&[&SETTINGS[..at], odd, &SETTINGS[at..]].concat());
        }
    }
}

/// What the crate reads, in the form of ours.
fn by_the_crate(text: &str) -> Option<Value> {
    fn json(value: &DeValue) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| json(item.get_ref())).collect())
            }
            DeValue::Table(inner) => object(inner),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => {
                Value::Number("0".to_owned())
            }
        }
    }
    fn object(table: &DeTable) -> Value {
        let mut object = Map::new();
        for (name, value) in table {
            object.insert(name.get_ref().to_string(), json(value.get_ref()));
        }
        Value::Object(object)
    }
    let table = DeTable::parse(text).ok()?;
    Some(object(table.get_ref()))
}

/// Pieces of documents, sound and broken.
const PIECES: &[&str] = &[
    "a",
    "b",
    "c-d",
    "\"q\"",
    "'l'",
    ".",
    " = ",
    "=",
    "\n",
    "\n",
    "\r\n",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    " ",
    "\t",
    "# c",
    "true",
    "false",
    "\"x\"",
    "'y'",
    "\"\\u00e9\"",
    "\"\\q\"",
    "\"\"\"m\nn\"\"\"",
    "'''o'''",
    "\"\"\"",
    "1",
    "-0",
    "08",
    "1_0",
    "1__0",
    "0xf",
    "0xg",
    "1.5",
    "1.",
    "1e5",
    "e",
    "inf",
    "1979-05-27",
    "07:32:00",
    "\"",
    "'",
    "\\",
    "é",
    "\u{0}",
    "a = 'x'\n",
    "[a]\n",
    "[a.b]\n",
    "[[t]]\n",
    "a.b = 1\n",
    "a = { b = 1 }\n",
    "a = [1, 'x']\n",
];

#[test]
fn it_reads_what_the_crate_reads_and_refuses_what_it_refuses() {
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % u64::try_from(most).unwrap()).unwrap()
    };
    let mut read = 0;
    for _ in 0..60_000 {
        let length = 1 + next(8);
        let text: String = (0..length).map(|_| PIECES[next(PIECES.len())]).collect();
        let ours = table(&text).ok().map(Value::Object);
        // The crate also takes what stands behind a number with an underscore.
        let lax = ours.is_none() && text.contains('_');
        assert!(lax || ours == by_the_crate(&text), "{text:?}");
        read += usize::from(ours.is_some());
    }
    assert!(read > 3000, "{read}");
}
