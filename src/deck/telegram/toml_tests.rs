//! Settings as people write them, and what is no TOML.

use super::*;
use serde_json::json;

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
    assert_eq!(Value::Object(table(SETTINGS).unwrap()), want);
    let windows = SETTINGS.replace('\n', "\r\n");
    let read = table(&windows).unwrap();
    assert_eq!(read["conductors"], want["conductors"]);
    assert_eq!(
        read["shell"]["init_script"],
        "export A=1\r\nexport B=\"2\"\r\n"
    );
}

#[test]
fn what_is_broken_names_its_line() {
    for (text, line) in [
        ("a = 1\nb", 2),
        ("\n\na = ~/x", 3),
        ("a = 'x' b = 'y'", 1),
        ("[a\nb = 1", 1),
        ("a = \"\\ud800\"", 1),
        ("a = 1\na = 2", 2),
        ("[a]\n[b]\n[a]", 3),
        ("[a]\nb = 1\n[a.b]", 3),
        ("a = {}\na.b = 1", 2),
    ] {
        assert_eq!(table(text).unwrap_err().line, line, "{text:?}");
    }
}

#[test]
fn hostile_nesting_is_an_error_and_no_overflow() {
    for part in ["[", "{a=", "[[", "a."] {
        for head in ["", "a = ", "[a]\nb = "] {
            let text = format!("{head}{}", part.repeat(200_000));
            assert!(table(&text).is_err(), "{head:?} {part:?}");
        }
    }
}
