//! `print`: the files of `contrib/`, from the binary. Those that start the
//! program name this very binary, and carry over what a service manager does not
//! know of the user's shell: `PATH`, and where tmux and agent-deck keep things.
//!
//! It works whatever the environment holds. This file does not know what is in
//! the files, but for the lines that it fills in.

use std::path::Path;

use super::{Failed, out, packed};
use crate::cli::Exit;
use crate::config::Environment;

/// What can be printed, in the order in which `build.rs` packs the files.
pub const NAMES: [&str; 8] = [
    "systemd",
    "onfailure",
    "launchd",
    "cron",
    "logrotate",
    "escalate",
    "triage",
    "man",
];

/// Where the files of `contrib/` expect the program, as a shell says it.
const PLACE: &str = "\"$HOME/.agent-deck/watchdog/agent-deck-watchdog\"";
/// Variables that a service manager does not know, and the program needs as the
/// sessions have them.
const VARIABLES: [&str; 4] = ["HOME", "TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
/// Always searched, behind what the user's own `PATH` names.
const STANDARD: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// Longest `PATH`, but for the last three: cron takes no line of 1000 bytes.
const PATH_MOST: usize = 900;

/// A character, and what stands for it.
type Marks = [(char, &'static str)];
/// Specifiers, and the inside of quotes.
const SYSTEMD: &Marks = &[('%', "%%"), ('\\', "\\\\"), ('"', "\\\"")];
/// The inside of double quotes.
const SHELL: &Marks = &[('\\', "\\\\"), ('"', "\\\""), ('$', "\\$"), ('`', "\\`")];
/// Text of an element.
const XML: &Marks = &[('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;")];
/// A command: cron makes a line break of a bare `%`.
const CRON: &Marks = &[('%', "\\%")];

/// Prints a file, byte by byte as it is.
///
/// # Errors
/// As [`text`], and when it does not go out.
pub fn print(what: &str, environment: Environment) -> Result<(), Failed> {
    let binary = std::env::current_exe().ok();
    out(&text(what, binary.as_deref(), environment)?)
}

/// The file's text, with the places of this machine filled in where `binary` and
/// the environment name them.
///
/// # Errors
/// When there is no such file, or the program lies where its path cannot be
/// written into it.
pub fn text(what: &str, binary: Option<&Path>, environment: Environment) -> Result<String, Failed> {
    let Some(place) = NAMES.iter().position(|name| *name == what) else {
        let names = NAMES.join(", ");
        let why = format!("there is no {what:?} to print; there are {names}");
        return Err(Failed::new(Exit::Usage, why));
    };
    let mut page = packed::text(place);
    // What the form cannot say of a path, even with quotes.
    let banned = match what {
        "systemd" => "'\"\\",
        "launchd" => "",
        "cron" => "\\",
        _ => return Ok(page),
    };
    if let Some(binary) = binary {
        let fits = |c: char| !c.is_control() && !banned.contains(c);
        let path = binary.to_str().filter(|path| path.chars().all(fits));
        let path = path.ok_or_else(|| Failed {
            exit: Exit::System,
            why: format!(
                "{what} cannot run a program with such a path: {:?}; copy it to \
                 ~/.agent-deck/watchdog/",
                binary.to_string_lossy()
            ),
        })?;
        program(&mut page, what, path);
    }
    if let Some(path) = environment("PATH") {
        let path = path_of(&path.to_string_lossy());
        variable(&mut page, what, "PATH", &path);
    }
    for name in VARIABLES {
        let value = environment(name).unwrap_or_default();
        if let Some(value) = value.to_str().filter(|value| is_plain(value)) {
            variable(&mut page, what, name, value);
        }
    }
    Ok(page)
}

/// Whether it is a path without marks that would need care everywhere.
fn is_plain(value: &str) -> bool {
    let fits = |c: char| !c.is_control() && c != '"';
    value.starts_with('/') && value.chars().all(fits)
}

/// The folders of a `PATH` that mean the same wherever it is used, each once.
fn path_of(value: &str) -> String {
    let mut path = String::new();
    for entry in value.split(':').chain(STANDARD) {
        let known = path.split(':').any(|known| known == entry);
        let full = path.len() + entry.len() > PATH_MOST && !STANDARD.contains(&entry);
        if known || full || !is_plain(entry) {
            continue;
        }
        if !path.is_empty() {
            path.push(':');
        }
        path.push_str(entry);
    }
    path
}

/// Writes the program's path down.
fn program(page: &mut String, what: &str, path: &str) {
    let shell = format!("\"{}\"", marked(path, SHELL));
    let marks = match what {
        "systemd" => {
            let mut path = marked(path, SYSTEMD);
            if path.contains(' ') {
                path = format!("\"{path}\"");
            }
            return put(page, "\nExecStart=", "\n", &format!("\nExecStart={path}"));
        }
        "launchd" => XML,
        _ => CRON,
    };
    let path = marked(&shell, marks);
    // With cron the run, and the question how it is.
    for _ in 0..2 {
        put(page, PLACE, "", &path);
    }
}

/// Writes a variable down; one for which the file has no place is left out.
fn variable(page: &mut String, what: &str, name: &str, value: &str) {
    let (set, unset, value) = match what {
        "systemd" => (
            format!("\nEnvironment=\"{name}="),
            format!("\n#Environment={name}="),
            marked(value, SYSTEMD) + "\"",
        ),
        "launchd" if name == "HOME" => return,
        "launchd" => {
            let path = "export PATH=";
            let (end, rest) = match name {
                "PATH" => ("exec", ""),
                _ => ("", path),
            };
            let value = marked(&marked(value, SHELL), XML);
            let set = format!("export {name}=\"{value}\"; {rest}");
            return put(page, path, end, &set);
        }
        _ => {
            let quote = if value.contains(' ') { "\"" } else { "" };
            (
                format!("\n{name}="),
                format!("\n#{name}="),
                format!("{quote}{value}{quote}"),
            )
        }
    };
    let line = [&*set, &value].concat();
    put(page, &set, "\n", &line);
    put(page, &unset, "\n", &line);
}

/// The text with marks where the form needs them.
fn marked(text: &str, marks: &Marks) -> String {
    let mut page = String::new();
    for c in text.chars() {
        match marks.iter().find(|(mark, _)| *mark == c) {
            Some((_, instead)) => page.push_str(instead),
            None => page.push(c),
        }
    }
    page
}

/// Puts something new where a part of the page begins so, up to its end.
fn put(page: &mut String, begin: &str, end: &str, new: &str) {
    if let Some(at) = page.find(begin) {
        let behind = at + begin.len();
        let length = page[behind..].find(end).unwrap_or(0);
        *page = [&page[..at], new, &page[behind + length..]].concat();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    const NOTHING: Environment = &|_| None;

    fn printed(what: &str, binary: &str, set: &[(&str, &str)]) -> String {
        let environment = |name: &str| {
            let value = set.iter().find(|(known, _)| *known == name);
            value.map(|(_, value)| OsString::from(value))
        };
        text(what, Some(Path::new(binary)), &environment).unwrap()
    }

    fn lines_with<'a>(page: &'a str, word: &str) -> Vec<&'a str> {
        page.lines().filter(|line| line.contains(word)).collect()
    }

    #[test]
    fn without_anything_known_the_files_are_as_they_are() {
        let files = [
            include_str!("../../contrib/agent-deck-watchdog.service"),
            include_str!("../../contrib/agent-deck-watchdog-failed.service"),
            include_str!("../../contrib/com.agentdeck.watchdog.plist"),
            include_str!("../../contrib/crontab.example"),
            include_str!("../../contrib/logrotate.conf"),
            include_str!("../../contrib/escalate.sh"),
            include_str!("../../contrib/triage-claude"),
            include_str!("../../contrib/agent-deck-watchdog.1"),
        ];
        for (what, file) in NAMES.into_iter().zip(files) {
            assert_eq!(text(what, None, NOTHING).unwrap(), file);
            assert!(file.ends_with('\n') && !file.ends_with("\n\n"), "{what}");
        }
        for what in ["", "Systemd", "../Cargo.toml", "service"] {
            let failed = text(what, None, NOTHING).unwrap_err();
            assert_eq!(failed.exit, Exit::Usage);
            for name in NAMES {
                assert!(failed.why.contains(name), "{}", failed.why);
            }
        }
    }

    #[test]
    fn what_starts_the_program_names_this_binary() {
        for what in ["systemd", "launchd", "cron"] {
            let page = printed(what, "/opt/w/agent-deck-watchdog", &[]);
            assert!(
                !page.contains("/.agent-deck/watchdog/agent-deck-watchdog"),
                "{what}"
            );
            assert!(page.contains("/opt/w/agent-deck-watchdog"), "{what}");
        }
        let strange = "/a b/100%/$HOME/`x`/<&>/adw";
        let unit = printed("systemd", strange, &[]);
        assert_eq!(
            lines_with(&unit, "ExecStart="),
            ["ExecStart=\"/a b/100%%/$HOME/`x`/<&>/adw\""]
        );
        let plist = printed("launchd", strange, &[]);
        let shell = "exec \"/a b/100%/\\$HOME/\\`x\\`/&lt;&amp;&gt;/adw\" 2&gt;&gt;";
        assert!(plist.contains(shell), "{plist}");
        let cron = printed("cron", strange, &[]);
        let run = "* * * * * \"/a b/100\\%/\\$HOME/\\`x\\`/<&>/adw\" --once";
        assert!(cron.contains(run), "{cron}");
        assert!(cron.contains("adw\" status"), "{cron}");
    }

    #[test]
    fn a_path_that_cannot_be_written_down_is_refused() {
        use std::os::unix::ffi::OsStrExt;
        let refused = |what: &str, binary: &[u8]| {
            let binary = Path::new(std::ffi::OsStr::from_bytes(binary));
            text(what, Some(binary), NOTHING).is_err_and(|failed| failed.exit == Exit::System)
        };
        for what in ["systemd", "launchd", "cron"] {
            assert!(
                refused(what, b"/a\nb") && refused(what, b"/a\xff"),
                "{what}"
            );
        }
        assert!(refused("systemd", b"/a'b") && refused("systemd", b"/a\\b"));
        assert!(refused("cron", b"/a\\b") && !refused("cron", b"/a'b"));
        assert!(!refused("man", b"/a\xff"));
    }

    #[test]
    fn what_the_shell_has_set_is_carried_over() {
        let set = [
            ("HOME", "/home/u"),
            ("PATH", "/home/u/a b:bin:/usr/bin::/x%y:/usr/bin:/\u{1}:."),
            ("TMUX_TMPDIR", "/run/u<1>"),
            ("XDG_DATA_HOME", "relative"),
        ];
        let path = "/home/u/a b:/usr/bin:/x%y:/usr/local/bin:/bin";
        let unit = printed("systemd", "/w", &set);
        let line = format!("Environment=\"PATH={}\"", path.replace('%', "%%"));
        assert_eq!(lines_with(&unit, "PATH="), [line]);
        assert_eq!(
            lines_with(&unit, "TMUX_TMPDIR="),
            ["Environment=\"TMUX_TMPDIR=/run/u<1>\""]
        );
        assert_eq!(
            lines_with(&unit, "XDG_DATA_HOME="),
            ["#Environment=XDG_DATA_HOME="]
        );
        let plist = printed("launchd", "/w", &set);
        let shell = format!(
            "<string>export TMUX_TMPDIR=\"/run/u&lt;1&gt;\"; export PATH=\"{path}\"; exec \"/w\""
        );
        assert!(plist.contains(&shell), "{plist}");
        let cron = printed("cron", "/w", &set);
        for line in [
            "HOME=/home/u",
            &format!("PATH=\"{path}\""),
            "TMUX_TMPDIR=/run/u<1>",
        ] {
            assert!(cron.lines().any(|known| known == line), "{line}: {cron}");
        }
        assert!(!cron.contains("/home/you"));
    }

    #[test]
    fn a_path_is_no_longer_than_cron_takes() {
        let long: Vec<String> = (0..200).map(|n| format!("/opt/tool-{n}/bin")).collect();
        let path = path_of(&long.join(":"));
        assert!(path.len() < 950 && path.starts_with("/opt/tool-0/bin:"));
        assert!(path.ends_with(&STANDARD.join(":")));
        assert_eq!(path_of(""), STANDARD.join(":"));
    }
}
