//! How is the watchdog started, and can that stay so? By systemd, launchd, cron,
//! or by nothing.
//!
//! Files are read and their text judged; what a service manager says is added
//! where it answers. This file does not know what the watchdog does.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::around::{self, Around, Seen, ask, disagreements, program, quoted, typed, with_folders};
use super::{Check, ok, problem, warning};
use crate::commands::desk::Desk;
use crate::deck::telegram::read;
use crate::host::logs::escape;

pub mod cron;
pub mod launchd;
pub mod unit;

use unit::{Starts, Unit};

/// The unit that `print systemd` is for.
pub const UNIT: &str = "agent-deck-watchdog.service";
/// Folders of user units, behind those of the user (systemd.unit(5)).
const FOLDERS: [&str; 4] = [
    "/etc/systemd/user",
    "/run/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
];

/// Who starts it, and whether that is set up right.
pub fn checks(desk: &mut Desk) -> Vec<Check> {
    let around = Around::look(desk);
    let mut found = Vec::new();
    let mut starters = systemd(desk, &around, &mut found);
    starters |= launchd::checks(desk, &around, &mut found);
    starters |= cron::checks(desk, &around, &mut found);
    if !starters {
        found.push(nothing(desk, &around));
    }
    found
}

/// Nothing that is known starts it.
fn nothing(desk: &Desk, around: &Around) -> Check {
    let home = &desk.machine.settings.home;
    let exe = program(home);
    let mend = if cfg!(target_os = "macos") {
        launchd::install(&exe)
    } else if is_booted() {
        format!(
            "mkdir -p ~/.config/systemd/user && {exe} print systemd \
             >~/.config/systemd/user/{UNIT} && systemctl --user daemon-reload && systemctl --user \
             enable --now agent-deck-watchdog && loginctl enable-linger"
        )
    } else {
        cron::install(home, &around.short_path())
    };
    let Some((pid, _)) = around.daemon else {
        return warning(
            "started by",
            "nothing starts it: no unit of systemd or launchd, no line of cron",
            mend,
        );
    };
    match super::agents::service_of(pid) {
        Some(name) => ok("started by", format!("{name}, as process {pid}")),
        None => warning(
            "started by",
            format!("process {pid} runs, but nothing starts it after a crash or a reboot"),
            mend,
        ),
    }
}

/// Whether systemd runs this machine (sd_booted(3)).
pub fn is_booted() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Where units of the user are, the strongest first.
fn folders(desk: &Desk, around: &Around) -> Vec<PathBuf> {
    let home = &desk.machine.settings.home;
    let mut folders = vec![around.ours.place("XDG_CONFIG_HOME").join("systemd/user")];
    folders.extend(FOLDERS.iter().map(PathBuf::from));
    folders.insert(3, home.join(".local/share/systemd/user"));
    folders
}

/// The unit's own file and its drop-ins, in the order in which they count.
fn files(folders: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let main = folders.iter().map(|folder| folder.join(UNIT));
    let mut files = vec![
        main.into_iter()
            .find(|file| file.symlink_metadata().is_ok())?,
    ];
    // Of one name the strongest counts; among names, the last.
    let mut drops: Vec<(OsString, PathBuf)> = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder.join([UNIT, ".d"].concat()));
        for entry in entries.into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let conf = path.extension().is_some_and(|end| end == "conf");
            if conf && !drops.iter().any(|(known, _)| *known == name) {
                let at = drops.iter().position(|(known, _)| *known > name);
                drops.insert(at.unwrap_or(drops.len()), (name, path));
            }
        }
    }
    files.extend(drops.into_iter().map(|(_, path)| path));
    Some(files)
}

/// The unit as it stands in its files, if there is one.
pub fn unit(desk: &Desk, around: &Around) -> Option<Unit> {
    let mut unit = Unit::default();
    for file in files(&folders(desk, around))? {
        unit.read(&read(&file).ok()??);
    }
    Some(unit)
}

/// A command that gives the watchdog a variable.
pub fn variable_set(has_unit: bool, name: &str, value: &str) -> String {
    if has_unit {
        let line = format!("Environment=\"{name}={value}\"").replace('%', "%%");
        let set = unit::line_set("Service", name, &line.replace('\'', ""));
        return format!("{set} && systemctl --user restart agent-deck-watchdog");
    }
    format!("export {name}={}", quoted(value))
}

/// The checks of systemd's unit. False: there is none.
fn systemd(desk: &mut Desk, around: &Around, found: &mut Vec<Check>) -> bool {
    let folders = folders(desk, around);
    let Some(files) = files(&folders) else {
        return false;
    };
    let home = desk.machine.settings.home.clone();
    let file = typed(&files[0], &home);
    let reset = format!(
        "{} print systemd >~/.config/systemd/user/{UNIT} && systemctl --user daemon-reload && \
         systemctl --user restart agent-deck-watchdog",
        program(&home)
    );
    if fs::read_link(&files[0]).is_ok_and(|to| to == Path::new("/dev/null")) {
        let mend = "systemctl --user unmask agent-deck-watchdog".to_owned();
        found.push(problem(
            unit::NAME,
            format!("{file} is masked: it is never started"),
            mend,
        ));
        return true;
    }
    let mut unit = Unit::default();
    for path in &files {
        match read(path) {
            Ok(text) => unit.read(&text.unwrap_or_default()),
            Err(why) => found.push(problem(unit::NAME, why, reset.clone())),
        }
    }
    let command = unit.command(&home.to_string_lossy());
    let once = command.iter().any(|word| word == "--once");
    let given = manager(desk, &["show-environment"]);
    let before = found.len();
    starts(desk, &command, &reset, found);
    if unit::starts_what(&command) != Starts::Python {
        found.extend(unit::judge(&unit, once));
        environment(
            &home,
            given.as_deref().unwrap_or_default(),
            around,
            &unit,
            found,
        );
    }
    if found.len() == before {
        found.push(ok(unit::NAME, format!("{file} is as it should be")));
    }
    if !once {
        state(desk, &folders, around, given.is_some(), found);
    }
    linger(found);
    true
}

/// What its command starts.
fn starts(desk: &mut Desk, command: &[String], reset: &str, found: &mut Vec<Check>) {
    let text = escape(&around::list(command.iter().map(String::as_str)));
    match unit::starts_what(command) {
        Starts::Python => found.push(problem(
            unit::NAME,
            format!("it starts the Python watchdog ({text}); two must not watch one deck"),
            reset,
        )),
        Starts::Unknown => found.push(problem(
            unit::NAME,
            format!("ExecStart={text} starts no watchdog"),
            reset,
        )),
        Starts::ByShell => {}
        Starts::Ours => found.extend(binary(desk, Path::new(&command[0]), reset)),
    }
}

/// Whether the binary that is started is there, and is this one.
fn binary(desk: &mut Desk, path: &Path, reset: &str) -> Option<Check> {
    let shown = path.display();
    if !path.is_absolute() {
        return None;
    }
    if !crate::machine::bin::is_program(path) {
        let sentence = format!("{shown}, which it starts, is not there or not executable");
        return Some(problem(unit::NAME, sentence, reset));
    }
    let this = std::env::current_exe().and_then(fs::canonicalize);
    if this.ok() == path.canonicalize().ok() {
        return None;
    }
    let version = match around::run(desk, path, &["--version"], &[]) {
        Ok((0, text)) if text.trim() == crate::cli::VERSION => return None,
        Ok((0, text)) => escape(text.trim()),
        Ok((code, _)) => format!("exit {code}"),
        Err(why) => why,
    };
    let sentence = format!(
        "it starts {shown}, which is another version ({version}) than this one ({})",
        crate::cli::VERSION
    );
    Some(warning(unit::NAME, sentence, reset))
}

/// Whether what it hands down fits the sessions.
/// `manager`: what the service manager itself hands down.
fn environment(home: &Path, manager: &str, around: &Around, unit: &Unit, found: &mut Vec<Check>) {
    let text = home.to_string_lossy().into_owned();
    let mut seen = Seen::default();
    seen.set("HOME", &text);
    unit::env_file(manager, &mut seen);
    unit.environment(&text, &mut seen);
    let (mut kept, mut last) = (Seen::default(), String::new());
    for (path, must) in unit.env_files(&text) {
        let file = Path::new(&path);
        let shown = typed(file, home);
        match read(file) {
            Ok(Some(text)) => {
                unit::env_file(&text, &mut seen);
                unit::env_file(&text, &mut kept);
                last.clone_from(&shown);
                if unit::env_file_faults(&text) {
                    let sentence =
                        format!("{shown} has lines with export, which systemd leaves out");
                    let mend = format!("sed -i 's/^ *export //' {shown}");
                    found.push(problem(unit::NAME, sentence, mend));
                }
                let mode = file
                    .metadata()
                    .map_or(0, |meta| meta.permissions().mode() & 0o777);
                if mode & 0o077 != 0 {
                    let sentence =
                        format!("{shown} may be read by others (mode {mode:o}); allowed: 600");
                    found.push(warning(unit::NAME, sentence, format!("chmod 600 {shown}")));
                }
            }
            Ok(None) if must => {
                let sentence = format!("{shown} is missing, and without it systemd starts nothing");
                found.push(problem(
                    unit::NAME,
                    sentence,
                    format!("(umask 077; touch {shown})"),
                ));
            }
            Ok(None) => {}
            Err(why) => found.push(warning(unit::NAME, why, format!("ls -l {shown}"))),
        }
    }
    let set = |name: &str, value: &str| {
        let set = variable_set(true, name, value);
        // What stands in a file counts more than a line of the unit.
        match kept.get(name) {
            "" => set,
            _ => format!("sed -i '/^{name}=/d' {last}; {set}"),
        }
    };
    fits(unit::NAME, "the unit", &seen, home, around, &set, found);
}

/// Whether a starter's variables fit the sessions. `set` is the command that
/// sets one.
pub fn fits(
    name: &'static str,
    who: &str,
    seen: &Seen,
    home: &Path,
    around: &Around,
    set: &dyn Fn(&str, &str) -> String,
    found: &mut Vec<Check>,
) {
    for (variable, value) in disagreements(seen, &around.sessions(), &around::PLACES) {
        let place = seen.place(variable);
        let sentence = format!(
            "with {who} {variable} leads to {}, with the sessions to {value}: it looks at another \
             place than they live in",
            place.display()
        );
        found.push(problem(name, sentence, set(variable, &value)));
    }
    let path = seen.get("PATH");
    let lacking = around.lacking(path, home);
    let Some((first, folder)) = lacking.first() else {
        return;
    };
    let needs = ["tmux", around::DECK].contains(&first.as_str());
    let all = around::list(lacking.iter().map(|(name, _)| name.as_str()));
    let sentence = format!(
        "PATH of {who} does not find {all} ({}); a restart from there may end at once",
        folder.display()
    );
    let mend = set("PATH", &with_folders(path, &lacking));
    found.push(if needs {
        problem(name, sentence, mend)
    } else {
        warning(name, sentence, mend)
    });
}

/// Asks the user's service manager; `None`: no answer.
fn manager(desk: &mut Desk, args: &[&str]) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let folder = format!("/run/user/{user}");
    let unset = std::env::var_os("XDG_RUNTIME_DIR").is_none_or(|value| value.is_empty());
    // Over ssh, su and cron it is not set.
    let extra: &[(&str, &str)] = match unset && Path::new(&folder).is_dir() {
        true => &[("XDG_RUNTIME_DIR", &folder)],
        false => &[],
    };
    let mut words = vec!["--user", "--no-pager"];
    words.extend(args);
    match ask(desk, "systemctl", &words, extra) {
        Ok((0, text)) => Some(text),
        Ok(_) | Err(_) => None,
    }
}

/// Whether it is enabled and runs. `answers`: the service manager does.
fn state(
    desk: &mut Desk,
    folders: &[PathBuf],
    around: &Around,
    answers: bool,
    found: &mut Vec<Check>,
) {
    if !is_enabled(folders) {
        found.push(warning(
            "unit enabled",
            "the unit is installed and not enabled: nothing starts it after a reboot",
            "systemctl --user enable agent-deck-watchdog",
        ));
    }
    let asked = "ActiveState,SubState,Result,NeedDaemonReload";
    let said = match answers {
        true => manager(desk, &["show", UNIT, "-p", asked]),
        false => None,
    };
    let pid = around.daemon.as_ref().map(|(pid, _)| *pid);
    if let Some(text) = said {
        found.extend(unit::judge_state(&text, pid));
        return;
    }
    let booted = is_booted();
    let why = match booted {
        true => "cannot be asked: the user's service manager does not answer",
        false => "cannot be asked: systemd does not run this machine",
    };
    let mend = match booted {
        true => "loginctl enable-linger && systemctl --user start agent-deck-watchdog".to_owned(),
        false => cron::install(&desk.machine.settings.home, &around.short_path()),
    };
    found.push(match pid {
        Some(pid) => ok("unit state", format!("{why}; process {pid} watches")),
        None => warning("unit state", format!("{why}; no watchdog runs"), mend),
    });
}

/// Whether something wants the unit: the links that `enable` makes.
fn is_enabled(folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut wants = entries.map(|entry| entry.path()).filter(|path| {
            path.extension()
                .is_some_and(|end| end == "wants" || end == "requires")
        });
        wants.any(|wants| wants.join(UNIT).symlink_metadata().is_ok())
    })
}

/// Whether the user's services outlive the last logout.
fn linger(found: &mut Vec<Check>) {
    if !is_booted() {
        return;
    }
    found.push(match lingers() {
        Some(true) => ok("linger", "the unit runs also while nobody is logged in"),
        Some(false) => warning(
            "linger",
            "the unit ends with the last logout and starts with the next login",
            "loginctl enable-linger",
        ),
        None => ok("linger", "cannot be seen: this user has no name"),
    });
}

/// The same; `None`: it cannot be said.
pub fn lingers() -> Option<bool> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = |line: &&str| line.split(':').nth(2) == Some(&user);
    let named = passwd.lines().find(of_user);
    let named = named
        .and_then(|line| line.split(':').next())
        .map(str::to_owned);
    // From elsewhere than that file (LDAP).
    let name = named
        .or_else(|| std::env::var("USER").ok())
        .filter(|name| !name.is_empty())?;
    Some(Path::new("/var/lib/systemd/linger").join(name).exists())
}
