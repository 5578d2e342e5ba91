//! The code, its help, the man page and the README say the same: commands,
//! options, variables, exit codes, files, and what can be printed.
//!
//! This file does not know what any of it does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agent_deck_watchdog::commands::print::NAMES;
use agent_deck_watchdog::guard::NOTICE_INTERVAL;
use agent_deck_watchdog::host::flags;
use agent_deck_watchdog::ladder::notices::{LINE, line};
use agent_deck_watchdog::parents::NOTICE_DEFER;
use agent_deck_watchdog::{cli, config};

type Words = BTreeSet<String>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

fn man() -> String {
    read("contrib/agent-deck-watchdog.1")
}

/// Words in a text that fit.
fn words(text: &str, fits: impl Fn(&str) -> bool) -> Words {
    let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)));
    parts.filter(|word| fits(word)).map(str::to_owned).collect()
}

fn is_flag(word: &str) -> bool {
    word.strip_prefix("--")
        .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
}

fn is_variable(word: &str) -> bool {
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.len() > 6 && word.contains('_') && word.chars().all(upper)
}

/// The part of a text between two lines that begin so.
fn section<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let begin = text
        .find(&format!("\n{begin}"))
        .unwrap_or_else(|| panic!("no {begin}"));
    let rest = &text[begin + 1..];
    let end = rest[1..].find(&format!("\n{end}")).map(|at| at + 1);
    &rest[..end.unwrap_or(rest.len())]
}

/// The flags in a part of the man page.
fn man_flags(part: &str) -> Words {
    words(&part.replace("Fl -", "--").replace("| -", "| --"), is_flag)
}

fn flags_of(rule: &cli::Rule) -> Words {
    let flag = |option: &&str| format!("--{}", option.trim_end_matches('='));
    rule.options.iter().map(flag).collect()
}

#[test]
fn commands_and_their_options_are_the_same_everywhere() {
    let (man, readme) = (man(), read("README.md"));
    let synopsis = section(&man, ".Sh SYNOPSIS", ".Sh DESCRIPTION");
    let forms: Vec<&str> = synopsis.split("\n.Nm").skip(1).collect();
    let commands = section(&man, ".Sh COMMANDS", ".Sh ");
    for rule in &cli::COMMANDS {
        let (name, flags) = (rule.name, flags_of(rule));
        let begin = format!("\n.Cm {name}");
        let form = match name {
            "" => forms[0],
            _ => forms
                .iter()
                .find(|form| form.starts_with(&begin))
                .unwrap_or_else(|| panic!("the man page's synopsis has no {name}")),
        };
        assert_eq!(man_flags(form), flags, "{name}: in the man page's synopsis");
        let help = words(rule.help, is_flag);
        assert!(flags.is_subset(&help), "{name}: in its help: {help:?}");
        for flag in &flags {
            assert!(readme.contains(flag), "README.md does not know {flag}");
        }
        if name.is_empty() {
            continue;
        }
        // Each option of a command, but --json, has words there too.
        let items: String = commands
            .split("\n.It ")
            .filter(|item| item.starts_with(&format!("Cm {name}")))
            .collect();
        assert!(
            !items.is_empty(),
            "the man page does not tell what {name} does"
        );
        let mut told = man_flags(&items);
        told.insert("--json".to_owned());
        assert!(flags.is_subset(&told), "{name}: {told:?}");
        assert!(
            readme.contains(&format!("agent-deck-watchdog {name}")),
            "README.md does not show {name}"
        );
    }
    let all: Words = cli::COMMANDS.iter().flat_map(flags_of).collect();
    let general = ["--help", "--version"].map(str::to_owned);
    let all: Words = all.into_iter().chain(general).collect();
    assert_eq!(man_flags(synopsis), all);
    let mut options = flags_of(&cli::COMMANDS[0]);
    options.extend(["--help", "--version"].map(str::to_owned));
    let described = section(&man, ".Sh DESCRIPTION", ".Ss");
    assert_eq!(man_flags(described), options);
}

#[test]
fn json_has_a_shape_for_each_command_that_prints_it() {
    let man = man();
    let json = section(&man, ".Sh JSON", ".Sh ");
    let items: Vec<&str> = json
        .lines()
        .filter_map(|line| line.strip_prefix(".It Cm "))
        .collect();
    for rule in &cli::COMMANDS {
        if rule.options.contains(&"json") {
            let known = |item: &&str| item.split([' ', ',']).any(|word| word == rule.name);
            assert!(items.iter().any(known), "no JSON of {}", rule.name);
        }
    }
}

#[test]
fn what_can_be_printed_is_the_same_everywhere() {
    let help = cli::COMMANDS.iter().find(|rule| rule.name == "print");
    let help = words(help.unwrap().help, |_| true);
    let man = man();
    let item = section(&man, ".It Cm print", ".El");
    let readme = words(&read("README.md"), |_| true);
    for name in NAMES {
        assert!(help.contains(name), "help: {name}");
        assert!(item.contains(&format!(".Cm {name}")), "man page: {name}");
        assert!(readme.contains(name), "README.md: {name}");
    }
}

#[test]
fn variables_are_the_same_everywhere() {
    let help = words(cli::HELP, is_variable);
    assert!(help.len() >= 7, "{help:?}");
    let readme = read("README.md");
    let rows = section(&readme, "## Settings", "#").lines();
    let rows: Vec<&str> = rows.filter(|line| line.starts_with("| `")).collect();
    let names = rows
        .iter()
        .map(|row| row.split('`').nth(1).unwrap().to_owned());
    assert_eq!(names.collect::<Words>(), help);
    let man = man();
    let environment = section(&man, ".Sh ENVIRONMENT", ".Sh ");
    let items = environment
        .lines()
        .filter_map(|line| line.strip_prefix(".It Ev "));
    assert_eq!(items.map(str::to_owned).collect::<Words>(), help);
    // What the code looks up beside them is not ours.
    let code = ["src/config.rs", "src/config/ladder.rs"].map(read);
    let code = code
        .each_ref()
        .map(|file| file.split("#[cfg(test)]").next().unwrap());
    let quoted = code
        .iter()
        .flat_map(|file| file.lines())
        .flat_map(|line| {
            line.split("//")
                .next()
                .unwrap()
                .split('"')
                .skip(1)
                .step_by(2)
        })
        .filter(|text| is_variable(text));
    let mut quoted: Words = quoted.map(str::to_owned).collect();
    for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMUX_TMPDIR"] {
        assert!(quoted.remove(name), "{name}");
    }
    assert!(read("src/commands/paper.rs").contains("\"NO_COLOR\""));
    quoted.insert("NO_COLOR".to_owned());
    assert_eq!(quoted, help);
    // `doctor` names those that are set.
    let doctor = words(&read("src/commands/doctor/settings.rs"), is_variable);
    let mut own = help;
    own.remove("NO_COLOR");
    assert!(own.is_subset(&doctor), "{own:?} {doctor:?}");
}

#[test]
fn defaults_and_ranges_are_the_same_everywhere() {
    let (man, readme) = (man(), read("README.md"));
    let settings = section(&readme, "## Settings", "#");
    let environment = section(&man, ".Sh ENVIRONMENT", ".Sh ");
    let papers = |name: &str| {
        let row = settings
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}`")));
        let item = section(environment, &format!(".It Ev {name}"), ".It");
        (row.unwrap(), item)
    };
    for number in [
        config::SPACING,
        config::POLL,
        config::POLLER_DEDUP,
        config::THRESHOLD,
        config::NUDGE_DEDUP,
        config::MAX_NUDGES,
        config::BATCH_MIN,
        config::TRIAGE_TIMEOUT,
        config::TERMINATE,
    ] {
        let (row, item) = papers(number.name);
        let range = format!("{} to {}", number.least, number.most);
        assert!(
            row.contains(&format!("| {} | {range}", number.default)),
            "{row}"
        );
        assert!(item.contains(&format!("{range}.")), "{item}");
        assert!(
            item.contains(&format!("Default {}", number.default)),
            "{item}"
        );
    }
    let (name, usual) = config::SCOPE;
    let (row, item) = papers(name);
    assert!(row.contains(&format!("| `{usual}` |")), "{row}");
    assert!(item.contains(&format!("Default\n.Ql {usual} .")), "{item}");
    for word in ["off", "any"] {
        assert!(row.contains(&format!("`{word}`")), "{row}");
        assert!(item.contains(&format!(".Ql {word}")), "{item}");
    }
}

/// The constants of the ladder that the user meets.
#[test]
fn what_a_parent_hears_is_as_the_papers_say() {
    let (man, readme) = (man(), read("README.md"));
    let notice = line(&[]);
    let mark = notice.split(' ').next().unwrap();
    let minutes = NOTICE_DEFER.as_secs() / 60;
    for (file, text) in [("man page", man), ("README.md", readme)] {
        let flat = text.replace('\n', " ");
        for part in [
            mark.to_owned(),
            format!("{LINE} bytes"),
            format!("{} s", NOTICE_INTERVAL.as_secs()),
            format!("{minutes} min"),
        ] {
            assert!(flat.contains(&part), "{file}: {part}");
        }
    }
}

#[test]
fn exit_codes_are_the_same_everywhere() {
    let codes = |texts: &mut dyn Iterator<Item = &str>| -> BTreeSet<u8> {
        texts.filter_map(|text| text.trim().parse().ok()).collect()
    };
    let help = cli::HELP
        .lines()
        .find_map(|line| line.strip_prefix("Exit: "))
        .unwrap();
    let help = codes(&mut help.split([' ', ',']));
    let real = [
        cli::Exit::Done,
        cli::Exit::Trouble,
        cli::Exit::Usage,
        cli::Exit::Taken,
        cli::Exit::System,
    ];
    assert_eq!(help, real.into_iter().map(|exit| exit as u8).collect());
    let readme = read("README.md");
    let rows = section(&readme, "### Exit codes", "#").lines();
    assert_eq!(
        codes(&mut rows.filter_map(|line| line.split('|').nth(1))),
        help
    );
    let man = man();
    let items = section(&man, ".Sh EXIT STATUS", ".Sh ").lines();
    assert_eq!(
        codes(&mut items.filter_map(|line| line.strip_prefix(".It "))),
        help
    );
    // Each command's help names the codes that it can end with beside 0, 2 and 5.
    for rule in cli::COMMANDS
        .iter()
        .filter(|rule| rule.help.contains("Exit: "))
    {
        assert!(rule.help.contains("Exit: 0 "), "{}", rule.name);
    }
}

#[test]
fn files_are_the_same_everywhere() {
    let mut names: Vec<String> = [
        "watchdog.log",
        "restart.log",
        "escalations.log",
        "state.json",
        "state.json.broken-",
        "lock",
        "escalate.sh",
        flags::PAUSE,
    ]
    .map(str::to_owned)
    .to_vec();
    names.extend(flags::FOLDERS.map(|folder| format!("{folder}/<id>")));
    let (man, readme) = (man(), read("README.md"));
    let files = section(&man, ".Sh FILES", ".Sh ");
    for name in &names {
        assert!(
            files.contains(&format!(".It Pa {name}")),
            "man page: {name}"
        );
        assert!(readme.contains(&format!("`{name}")), "README.md: {name}");
    }
    // What the program names is among them.
    for file in ["src/host/logs.rs", "src/machine/memory.rs"] {
        let code = read(file);
        let code = code.split("#[cfg(test)]").next().unwrap();
        let quoted = code.split('"').skip(1).step_by(2);
        for name in quoted.filter(|text| text.ends_with(".log") && !text.contains(' ')) {
            assert!(names.iter().any(|known| known == name), "{file}: {name}");
        }
    }
}

#[test]
fn the_changelog_knows_this_version() {
    let heading = format!("\n## [{}] - ", env!("CARGO_PKG_VERSION"));
    assert!(read("CHANGELOG.md").contains(&heading), "no {heading}");
}
