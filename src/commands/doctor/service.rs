//! How is the watchdog started, and can that stay so? By systemd, launchd, cron,
//! or by nothing.
//!
//! Files are read and their text judged; what a service manager says is added
//! where it answers. This file does not know what the watchdog does.

use std::ffi::{OsStr, OsString};
use std::fmt::{Display, Formatter};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::agents::service_of;
use super::case::{Case, DEADLINE};
use super::environ::{Environ, PLACES};
use super::hooks::same;
use super::settings::set_here;
use super::shell::{Ourselves, Typed};
use crate::cli::VERSION;
use crate::commands::paper::Light;
use crate::deck::telegram::read;
use crate::host::exec::Call;
use crate::host::flags::names;
use crate::host::users::{me, passwd};
use crate::machine::bin::is_program;

mod cron;
mod launchd;
pub mod unit;

use unit::{Line, NAME, RESTART, Starts, Unit};

/// The unit that `print systemd` is for.
pub const UNIT: &str = "agent-deck-watchdog.service";
/// Folders of user units, seen from home, behind that of the user's configuration
/// (systemd.unit(5)).
const FOLDERS: [&str; 5] = [
    "/etc/systemd/user",
    "/run/systemd/user",
    ".local/share/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
];

/// A command that installs the unit that is printed.
struct Print;

impl Display for Print {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        let folder = "~/.config/systemd/user";
        write!(
            out,
            "mkdir -p {folder} && {Ourselves} print systemd >{folder}/{UNIT} && systemctl --user \
             daemon-reload"
        )
    }
}

/// Who starts it, and whether that is set up right.
pub fn checks(case: &mut Case) {
    let mut starters = systemd(case);
    // Elsewhere there is none.
    starters |= cfg!(target_os = "macos") && launchd::checks(case);
    starters |= cron::checks(case);
    if !starters {
        nothing(case);
    }
}

/// Nothing that is known starts it.
fn nothing(case: &Case) {
    const NAME: &str = "started by";
    let found = case.found;
    let pid = case.watcher.as_ref().map(|watcher| watcher.pid);
    if let Some(pid) = pid
        && let Some(name) = service_of(pid)
    {
        return found.ok(NAME, format_args!("{name}, as process {pid}"));
    }
    let mend = if cfg!(target_os = "macos") {
        launchd::install()
    } else if is_booted() {
        format!(
            "{Print} && systemctl --user enable --now agent-deck-watchdog && loginctl enable-linger"
        )
    } else {
        cron::install()
    };
    let mend = format_args!("{mend}");
    match pid {
        Some(pid) => found.warning(
            NAME,
            format_args!("process {pid} runs, but nothing starts it after a crash or a reboot"),
            mend,
        ),
        None => found.warning(
            NAME,
            format_args!("nothing starts it: no unit of systemd or launchd, no line of cron"),
            mend,
        ),
    }
}

/// Whether systemd runs this machine (sd_booted(3)).
pub fn is_booted() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Where units of the user are, the strongest first.
fn folders(case: &Case) -> Vec<PathBuf> {
    let mut folders = vec![case.ours.place("XDG_CONFIG_HOME").join("systemd/user")];
    for folder in FOLDERS {
        folders.push(case.home().join(folder));
    }
    folders
}

/// The unit's own file and its drop-ins, in the order in which they count; none
/// where there is no unit.
fn files(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        let file = folder.join(UNIT);
        if files.is_empty() && file.symlink_metadata().is_ok() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return files;
    }
    // Of one name the strongest counts; among names, the last.
    for folder in folders {
        let folder = folder.join([UNIT, ".d"].concat());
        for name in names(&folder).unwrap_or_default() {
            let known = |file: &PathBuf| file.file_name().unwrap_or_default() >= OsStr::new(&name);
            let at = files[1..].iter().position(known).unwrap_or(files.len() - 1) + 1;
            let other = files.get(at).and_then(|file| file.file_name());
            if name.ends_with(".conf") && other != Some(OsStr::new(&name)) {
                files.insert(at, folder.join(&name));
            }
        }
    }
    files
}

/// The unit as it stands in its files, if there is one that can be read.
pub fn unit(case: &Case) -> Option<Unit> {
    let mut unit = Unit::default();
    let files = files(&folders(case));
    for file in &files {
        unit.read(&read(file).ok()??);
    }
    (!files.is_empty()).then_some(unit)
}

/// A command that gives the watchdog a variable.
pub fn variable_set(has_unit: bool, name: &str, value: &OsStr) -> String {
    if !has_unit {
        return set_here(name, Some(value));
    }
    let value = value.to_string_lossy().replace('%', "%%").replace('\'', "");
    let line = format!("Environment=\"{name}={value}\"");
    let line = Line("Service", name, &line);
    format!("{line} && {RESTART}")
}

/// The checks of systemd's unit. False: there is none.
fn systemd(case: &mut Case) -> bool {
    let folders = folders(case);
    let files = files(&folders);
    let Some(main) = files.first() else {
        return false;
    };
    let found = case.found;
    let home = case.home().to_owned();
    let file = Typed {
        path: main,
        home: &home,
    };
    if fs::read_link(main).is_ok_and(|to| to.as_os_str() == "/dev/null") {
        found.problem(
            NAME,
            format_args!("{file} is masked: it is never started"),
            format_args!("systemctl --user unmask agent-deck-watchdog"),
        );
        return true;
    }
    let before = found.count();
    let mut unit = Unit::default();
    for path in &files {
        match read(path) {
            Ok(text) => unit.read(&text.unwrap_or_default()),
            Err(why) => {
                found.problem(
                    NAME,
                    format_args!("{why}"),
                    format_args!("{Print} && {RESTART}"),
                );
            }
        }
    }
    let command = unit.command(&home.to_string_lossy());
    let once = command.iter().any(|word| word == "--once");
    let given = manager(case, &["show-environment"]);
    let answers = given.is_some();
    starts(case, &command);
    if unit::starts_what(&command) != Starts::Python {
        unit::judge(&unit, once, found);
        environment(case, &home, &given.unwrap_or_default(), &unit);
    }
    if found.count() == before {
        found.ok(NAME, format_args!("{file} is as it should be"));
    }
    if !once {
        state(case, &folders, answers);
    }
    linger(case);
    true
}

/// What its command starts.
fn starts(case: &mut Case, command: &[String]) {
    let found = case.found;
    let text = command.join(" ");
    let mend = format_args!("{Print} && {RESTART}");
    match unit::starts_what(command) {
        Starts::Python => found.problem(
            NAME,
            format_args!("it starts the Python watchdog ({text}); two must not watch one deck"),
            mend,
        ),
        Starts::Unknown => found.problem(
            NAME,
            format_args!("ExecStart={text} starts no watchdog"),
            mend,
        ),
        Starts::ByShell => {}
        Starts::Ours => binary(case, Path::new(&command[0])),
    }
}

/// Whether the binary that is started is there, and is this one.
fn binary(case: &mut Case, path: &Path) {
    let found = case.found;
    let shown = path.display();
    let mend = format_args!("{Print} && {RESTART}");
    if !path.is_absolute() {
        return;
    }
    if !is_program(path) {
        let sentence = format_args!("{shown}, which it starts, is not there or not executable");
        return found.problem(NAME, sentence, mend);
    }
    if std::env::current_exe().is_ok_and(|this| same(&this, path)) {
        return;
    }
    let call = Call {
        program: path,
        args: &["--version"],
        deadline: DEADLINE,
        most: 4096,
        extra_env: &[],
        keep_token: false,
    };
    let version = match case.run(&call) {
        Ok((0, text, _)) if text.trim() == VERSION => return,
        Ok((0, text, _)) => text.trim().to_owned(),
        Ok((code, ..)) => format!("exit {code}"),
        Err(why) => why,
    };
    found.warning(
        NAME,
        format_args!(
            "it starts {shown}, which is another version ({version}) than this one ({VERSION})"
        ),
        mend,
    );
}

/// Whether what it hands down fits the sessions.
/// `manager`: what the service manager itself hands down.
fn environment(case: &Case, home: &Path, manager: &str, unit: &Unit) {
    let found = case.found;
    let text = home.to_string_lossy();
    let mut environ = Environ::default();
    environ.set("HOME", home.as_os_str());
    unit::env_file(manager, &mut environ);
    unit.environment(&text, &mut environ);
    let (mut kept, mut last) = (Environ::default(), String::new());
    for (path, must) in unit.env_files(&text) {
        let path = Path::new(&path);
        let shown = Typed { path, home };
        let file = match read(path) {
            Ok(Some(file)) => file,
            Ok(None) if !must => continue,
            Ok(None) => {
                found.problem(
                    NAME,
                    format_args!("{shown} is missing, and without it systemd starts nothing"),
                    format_args!("(umask 077; touch {shown})"),
                );
                continue;
            }
            Err(why) => {
                found.warning(NAME, format_args!("{why}"), format_args!("ls -l {shown}"));
                continue;
            }
        };
        unit::env_file(&file, &mut environ);
        unit::env_file(&file, &mut kept);
        last = shown.to_string();
        if file
            .lines()
            .any(|line| line.trim_start().starts_with("export "))
        {
            found.problem(
                NAME,
                format_args!("{shown} has lines with export, which systemd leaves out"),
                format_args!("sed -i 's/^ *export //' {shown}"),
            );
        }
        let mode = path.metadata().map_or(0, |meta| meta.permissions().mode());
        let mode = mode & 0o777;
        if mode & 0o077 != 0 {
            found.warning(
                NAME,
                format_args!("{shown} may be read by others (mode {mode:o}); allowed: 600"),
                format_args!("chmod 600 {shown}"),
            );
        }
    }
    let set = |name: &str, value: &OsStr| {
        let set = variable_set(true, name, value);
        // What stands in a file counts more than a line of the unit.
        match kept.get(name).is_empty() {
            true => set,
            false => format!("sed -i '/^{name}=/d' {last}; {set}"),
        }
    };
    fits(case, NAME, "the unit", &environ, &set);
}

/// Whether a starter's variables fit the sessions. `set` is the command that
/// sets one.
fn fits(
    case: &Case,
    name: &'static str,
    who: &str,
    environ: &Environ,
    set: &dyn Fn(&str, &OsStr) -> String,
) {
    let found = case.found;
    let sessions = case.sessions();
    for variable in PLACES {
        if let Some(value) = environ.other_place(&sessions, variable) {
            found.problem(
                name,
                format_args!(
                    "with {who} {variable} leads to {}, with the sessions to {}: it looks at \
                     another place than they live in",
                    environ.place(variable).display(),
                    value.display()
                ),
                format_args!("{}", set(variable, value.as_os_str())),
            );
        }
    }
    if let Some(lacking) = case.lacking(environ.get("PATH")) {
        let light = match lacking.dire {
            true => Light::Red,
            false => Light::Yellow,
        };
        found.say(
            name,
            light,
            format_args!(
                "PATH of {who} does not find {} ({}); a restart from there may end at once",
                lacking.names,
                lacking.folder.display()
            ),
            format_args!("{}", set("PATH", &lacking.path)),
        );
    }
}

/// Asks the user's service manager; `None`: no answer.
fn manager(case: &mut Case, args: &[&str]) -> Option<String> {
    let folder = format!("/run/user/{}", me());
    let unset = std::env::var_os("XDG_RUNTIME_DIR").is_none_or(|value| value.is_empty());
    // Over ssh, su and cron it is not set.
    let extra: &[(&str, &str)] = match unset && Path::new(&folder).is_dir() {
        true => &[("XDG_RUNTIME_DIR", &folder)],
        false => &[],
    };
    let mut words = vec!["--user", "--no-pager"];
    words.extend(args);
    let (code, text) = case.ask("systemctl", &words, extra).ok()?;
    (code == 0).then_some(text)
}

/// Whether it is enabled and runs. `answers`: the service manager does.
fn state(case: &mut Case, folders: &[PathBuf], answers: bool) {
    let found = case.found;
    if !folders.iter().any(|folder| is_enabled(folder)) {
        found.warning(
            "unit enabled",
            format_args!("the unit is installed and not enabled: nothing starts it after a reboot"),
            format_args!("systemctl --user enable agent-deck-watchdog"),
        );
    }
    let asked = "ActiveState,SubState,Result,NeedDaemonReload";
    let said = match answers {
        true => manager(case, &["show", UNIT, "-p", asked]),
        false => None,
    };
    let pid = case.watcher.as_ref().map(|watcher| watcher.pid);
    if let Some(text) = said {
        return unit::judge_state(&text, pid, found);
    }
    let (why, mend) = match is_booted() {
        true => (
            "the user's service manager does not answer",
            "loginctl enable-linger && systemctl --user start agent-deck-watchdog".to_owned(),
        ),
        false => ("systemd does not run this machine", cron::install()),
    };
    match pid {
        Some(pid) => found.ok(
            unit::STATE,
            format_args!("cannot be asked: {why}; process {pid} watches"),
        ),
        None => found.warning(
            unit::STATE,
            format_args!("cannot be asked: {why}; no watchdog runs"),
            format_args!("{mend}"),
        ),
    }
}

/// Whether something wants the unit: the links that `enable` makes.
fn is_enabled(folder: &Path) -> bool {
    let names = names(folder).unwrap_or_default();
    names.iter().any(|name| {
        let wants = name.ends_with(".wants") || name.ends_with(".requires");
        wants && folder.join(name).join(UNIT).symlink_metadata().is_ok()
    })
}

/// Whether the user's services outlive the last logout.
fn linger(case: &Case) {
    const NAME: &str = "linger";
    if !is_booted() {
        return;
    }
    match lingers() {
        Some(false) => case.found.warning(
            NAME,
            format_args!("the unit ends with the last logout and starts with the next login"),
            format_args!("loginctl enable-linger"),
        ),
        Some(true) => case.found.ok(
            NAME,
            format_args!("the unit runs also while nobody is logged in"),
        ),
        None => case
            .found
            .ok(NAME, format_args!("cannot be seen: this user has no name")),
    }
}

/// The same; `None`: it cannot be said.
pub fn lingers() -> Option<bool> {
    let name = match passwd(me()) {
        Some((name, _)) => OsString::from(name),
        // From elsewhere than that file (LDAP).
        None => std::env::var_os("USER").unwrap_or_default(),
    };
    let mark = Path::new("/var/lib/systemd/linger").join(&name);
    (!name.is_empty()).then(|| mark.exists())
}
