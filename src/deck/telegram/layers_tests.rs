//! Layers of the environment, as the real agent-deck 1.14.0 laid them.

use super::*;
use crate::scratch::Scratch;

const CONFIG: &str = ".config/agent-deck/config.toml";
const META: &str = ".local/share/agent-deck/conductor/ops/meta.json";
const OPS: (&str, &str) = ("conductor-ops", "work/x");

/// A home with these files; `~~` in them is the home folder.
fn home(files: &[(&str, &str)]) -> Scratch {
    let home = Scratch::new();
    home.folder("proj");
    for (name, text) in files {
        home.write(name, text.replace("~~", &home.path().to_string_lossy()));
    }
    home
}

fn roots(home: &Scratch) -> Roots {
    Roots {
        home: home.path().to_owned(),
        xdg_data_home: None,
        xdg_config_home: None,
        agent_deck_root: None,
    }
}

fn said(home: &Scratch, (title, group): (&str, &str)) -> Declared {
    let project = home.join("proj");
    declared(&roots(home), title, group, project.to_str().unwrap())
}

/// Checks what is said of a session; `~` is the home folder.
fn expect(files: &[(&str, &str)], session: (&str, &str), want: &str) {
    let home = home(files);
    let path = match want.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(want),
    };
    let want = match want {
        "" => Declared::Nothing,
        _ => Declared::Folder(path),
    };
    assert_eq!(said(&home, session), want, "{files:?}");
}

/// Checks that nothing is said for certain, and why.
fn unknown(files: &[(&str, &str)], why: &str) {
    let home = home(files);
    match said(&home, OPS) {
        Declared::Unknown(text) => {
            let why = why.replace("~~", &home.path().to_string_lossy());
            assert!(text.contains(&why), "{text:?} instead of {why:?}");
        }
        other => panic!("{files:?}: {other:?}"),
    }
}

#[test]
fn nothing_is_nothing() {
    expect(&[], OPS, "");
    expect(&[(CONFIG, "")], OPS, "");
    expect(
        &[(CONFIG, "[claude]\nenv_file = ''"), (META, "{}")],
        OPS,
        "",
    );
    expect(
        &[(CONFIG, "[groups.other.claude.env]\nTELEGRAM_STATE_DIR='/x'")],
        OPS,
        "",
    );
    expect(&[(META, "{\"env\":null,\"env_file\":null}")], OPS, "");
}

#[test]
fn the_conductors_own_env_file_counts() {
    let config = "[conductors.ops.claude]\nenv_file = \"~/tg/ops.env\"\n";
    let file = "# bot\nexport TELEGRAM_STATE_DIR=\"$HOME/tg/ops\"  # bot\n";
    let files = [(CONFIG, config), ("tg/ops.env", file)];
    expect(&files, OPS, "~/tg/ops");
    // By the title alone: neither another conductor nor a plain session has it.
    expect(&files, ("conductor-opsy", "work"), "");
    expect(&files, ("ops", "conductor"), "");
    expect(&files, ("conductor-", "work"), "");
    let old = [(".agent-deck/config.toml", config), ("tg/ops.env", file)];
    expect(&old, OPS, "~/tg/ops");
    let both = [(CONFIG, ""), (".agent-deck/config.toml", config)];
    expect(&both, OPS, "");
}

const A: (&str, &str) = ("a.env", "export TELEGRAM_STATE_DIR=/a\n");
const B: (&str, &str) = ("b.env", "export TELEGRAM_STATE_DIR=/b\n");
const C: (&str, &str) = ("c.env", "export TELEGRAM_STATE_DIR=/c\n");
const OTHER: (&str, &str) = ("o.env", "export OTHER=1\n");

#[test]
fn one_env_file_hides_the_others() {
    let conductor = "[conductors.ops.claude]\nenv_file='~/a.env'\n";
    let nothing = "[conductors.ops.claude]\nenv_file='~/o.env'\n";
    let group = "[groups.work.claude]\nenv_file='~/b.env'\n";
    let leaf = "[groups.\"work/x\".claude]\nenv_file='~/c.env'\n";
    let global = "[claude]\nenv_file='~/c.env'\n";
    for (config, want) in [
        ([conductor, group, global].concat(), "/a"),
        ([nothing, group, global].concat(), ""),
        ([group, global].concat(), "/b"),
        ([group, leaf].concat(), "/c"),
        (global.to_owned(), "/c"),
    ] {
        expect(&[(CONFIG, &config), A, B, C, OTHER], OPS, want);
    }
    // A session outside that group.
    expect(
        &[(CONFIG, &[group, global].concat()), B, C],
        ("bot", "works"),
        "/c",
    );
}

#[test]
fn settings_win_over_files_and_the_nearest_group_over_its_parents() {
    let file = "[conductors.ops.claude]\nenv_file='~/a.env'\n";
    let root = "[groups.work.claude.env]\nTELEGRAM_STATE_DIR='/root'\n";
    let leaf = "[groups.'work/x'.claude]\nenv = { TELEGRAM_STATE_DIR = '/leaf' }\n";
    let own = "[conductors.ops.claude.env]\nTELEGRAM_STATE_DIR='/own $HOME'\n";
    for (config, want) in [
        ([file, root].concat(), "/root"),
        ([file, leaf, root].concat(), "/leaf"),
        ([own, leaf, root].concat(), "/own $HOME"),
    ] {
        expect(&[(CONFIG, &config), A], OPS, want);
    }
    expect(
        &[(CONFIG, &[leaf, root].concat())],
        ("bot", "work/y/z"),
        "/root",
    );
}

#[test]
fn the_conductors_record_wins_over_all() {
    let own =
        "[conductors.ops.claude]\nenv_file='~/b.env'\nenv={TELEGRAM_STATE_DIR='/own', D='/d'}\n";
    let value = "{\"env\":{\"TELEGRAM_STATE_DIR\":\"/m\"},\"env_file\":\"~/a.env\"}";
    expect(&[(CONFIG, own), (META, value), A, B], OPS, "/m");
    expect(
        &[(CONFIG, own), (META, "{\"env_file\":\"~/a.env\"}"), A, B],
        OPS,
        "/a",
    );
    // Relative to the project, and with what came before.
    let file = ("proj/m.env", "export TELEGRAM_STATE_DIR=$D/m\n");
    expect(
        &[(CONFIG, own), (META, "{\"env_file\":\"m.env\"}"), file, B],
        OPS,
        "/d/m",
    );
    expect(&[(CONFIG, own), (META, value), A, B], ("bot", "work"), "");
    // Elsewhere.
    let old = ".agent-deck/conductor/ops/meta.json";
    expect(&[(old, value), A], OPS, "/m");
    let moved = "[conductor]\ndir = ' ~/cond '\n";
    expect(
        &[(CONFIG, moved), ("cond/ops/meta.json", value), A],
        OPS,
        "/m",
    );
    expect(
        &[(CONFIG, "[conductor]\ndir='$HOME/c'"), (META, value), A],
        OPS,
        "",
    );
}

#[test]
fn the_shells_settings_come_first() {
    let files = "[shell]\nenv_files = ['~/a.env', '${HOME}/b.env']\n";
    expect(&[(CONFIG, files), A, B], OPS, "/b");
    let inline = [files, "init_script = 'export TELEGRAM_STATE_DIR=/i'\n"].concat();
    expect(&[(CONFIG, &inline), A, B], OPS, "/i");
    let script = [
        files,
        "init_script = '~/c.env'\n[claude]\nenv_file='~/o.env'",
    ]
    .concat();
    expect(&[(CONFIG, &script), A, B, C, OTHER], OPS, "/c");
    let all = "[shell]\ninit_script='set -a'\n[claude]\nenv_file='x.env'\n";
    expect(
        &[(CONFIG, all), ("proj/x.env", "TELEGRAM_STATE_DIR=/x")],
        OPS,
        "/x",
    );
    let hook = "[shell]\ninit_script='''eval \"$(direnv hook bash)\"'''\n";
    unknown(
        &[(CONFIG, hook)],
        "config.toml: init_script line 1: needs a shell",
    );
    let relative = "[shell]\ninit_script='./i.sh'\n";
    expect(&[(CONFIG, relative), ("proj/i.sh", A.1)], OPS, "/a");
}

#[test]
fn names_of_settings_are_read_in_any_case() {
    let config =
        "[Conductors.ops.Claude]\nEnv_File='~/a.env'\n[conductors.OPS.claude]\nenv_file='~/b.env'";
    let home = home(&[(CONFIG, config), A, B]);
    // Two tables of one name in different case: the exact one.
    assert_eq!(said(&home, OPS), Declared::Nothing);
    let config = "[Conductors.ops.Claude]\nEnv_File='~/a.env'\n";
    expect(&[(CONFIG, config), A], OPS, "/a");
    expect(&[(CONFIG, config), A], ("conductor-OPS", "work"), "");
}

/// Version 1.14.0 ignores it, with a warning; versions before 1.9 did not.
#[test]
fn settings_of_a_built_in_tool_are_doubtful() {
    let tool = "[tools.claude.env]\nTELEGRAM_STATE_DIR='/a'\n";
    unknown(
        &[(CONFIG, tool)],
        "config.toml: [tools.claude].env counts in old versions",
    );
    let own = "[conductors.ops.claude]\nenv_file='~/a.env'\n";
    expect(&[(CONFIG, &[tool, own].concat()), A], OPS, "/a");
    let meta = (META, "{\"env\":{\"TELEGRAM_STATE_DIR\":\"/m\"}}");
    expect(&[(CONFIG, tool), meta], OPS, "/m");
    expect(&[(CONFIG, "[tools.claude.env]\nA='1'")], OPS, "");
}

/// Settings that make the folder unknown, and why.
const UNREADABLE: [(&str, &str); 19] = [
    (
        "\n\n[shell\n",
        "~~/.config/agent-deck/config.toml line 3: a quote or bracket that is not closed",
    ),
    ("a = 1\na = 2\n", "config.toml line 2: defined twice"),
    (
        "conductors = 1\n",
        "config.toml: conductors has the wrong type",
    ),
    (
        "[conductors]\nops = 'x'\n",
        "config.toml: a conductor or group has the wrong type",
    ),
    (
        "[conductors.ops]\nclaude = []\n",
        "config.toml: claude has the wrong type",
    ),
    (
        "[conductors.ops.claude]\nenv_file = 1\n",
        "config.toml: env_file has the wrong type",
    ),
    (
        "[conductors.ops.claude]\nenv = 'x'\n",
        "config.toml: env has the wrong type",
    ),
    (
        "[conductors.ops.claude.env]\nA = 1\n",
        "config.toml: env has the wrong type",
    ),
    (
        "[groups]\nwork = 1\n",
        "config.toml: a conductor or group has the wrong type",
    ),
    (
        "[shell]\nenv_files = 'x'\n",
        "config.toml: env_files has the wrong type",
    ),
    (
        "[shell]\nenv_files = ['~/w.env', 1]\n",
        "config.toml: env_files has the wrong type",
    ),
    (
        "[shell]\ninit_script = true\n",
        "config.toml: init_script has the wrong type",
    ),
    (
        "[claude]\nenv_file = 'x.env'\n",
        "~~/proj/x.env: missing; agent-deck then",
    ),
    ("[claude]\nenv_file = '~'\n", "not a plain file"),
    (
        "[claude]\nenv_file = '$NOPE/x'\n",
        "config.toml: a path in it needs a shell",
    ),
    (
        "[claude]\nenv_file = '$HOMES/x'\n",
        "config.toml: a path in it needs a shell",
    ),
    (
        "[claude]\nenv_file = '~/a`b'\n",
        "config.toml: a path in it needs a shell",
    ),
    (
        "[conductor]\ndir = 'x'\n",
        "conductor.dir is not an absolute path",
    ),
    (
        "[shell]\nenv_files = ['~/w.env']\n",
        "~~/w.env line 2: needs a shell: $( )",
    ),
];

#[test]
fn what_cannot_be_read_makes_it_unknown() {
    for (config, why) in UNREADABLE {
        let file = "\nexport TELEGRAM_STATE_DIR=$(pwd)/x\n";
        unknown(&[(CONFIG, config), ("w.env", file)], why);
    }
}

#[test]
fn what_cannot_be_read_of_a_conductor_makes_it_unknown() {
    let own = "[conductors.ops.claude.env]\nTELEGRAM_STATE_DIR='/own'\n";
    for (meta, why) in [
        ("{\n\"env\": {", "/conductor/ops/meta.json line 2: not JSON"),
        ("[]", "meta.json: its content has the wrong type"),
        ("{\"env\":[]}", "meta.json: env has the wrong type"),
        ("{\"env\":{\"A\":1}}", "meta.json: env has the wrong type"),
        ("{\"env_file\":7}", "meta.json: env_file has the wrong type"),
        (
            "{\"env_file\":\"x.env\"}",
            "~~/proj/x.env: missing; agent-deck then",
        ),
    ] {
        unknown(&[(CONFIG, own), (META, meta)], why);
    }
}

#[test]
fn odd_files_are_refused() {
    let config = "[claude]\nenv_file='~/x.env'\n";
    let large = "#".repeat((1 << 20) + 1);
    unknown(
        &[(CONFIG, config), ("x.env", &large)],
        "~~/x.env: more than 1 MiB",
    );
    let home = home(&[(CONFIG, config)]);
    // Opening it would wait for a writer.
    let fifo = home.join("x.env");
    let mode = rustix::fs::Mode::from_bits_truncate(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
    let Declared::Unknown(why) = said(&home, OPS) else {
        panic!("a FIFO was read");
    };
    assert!(why.ends_with("x.env: not a plain file"), "{why}");
    std::fs::remove_file(&fifo).unwrap();
    // Links are followed, as agent-deck follows them.
    home.write("real.env", A.1);
    std::os::unix::fs::symlink("real.env", &fifo).unwrap();
    assert_eq!(said(&home, OPS), Declared::Folder("/a".into()));
    // Bytes that are no UTF-8 harm only where they matter.
    home.write("real.env", b"# \xff\nexport TELEGRAM_STATE_DIR=/a");
    assert_eq!(said(&home, OPS), Declared::Folder("/a".into()));
    home.write("real.env", b"export TELEGRAM_STATE_DIR=/a\xff");
    assert!(matches!(said(&home, OPS), Declared::Unknown(_)));
    home.write(CONFIG, b"# \xff");
    assert!(matches!(said(&home, OPS), Declared::Unknown(_)));
}

#[test]
fn a_look_that_fails_is_unknown() {
    let home = Scratch::new();
    home.write(".config", "a file in place of the folder");
    assert!(matches!(said(&home, OPS), Declared::Unknown(_)));
    let home = Scratch::new();
    home.write(CONFIG, "[shell]\nenv_files=['x.env']");
    let said = declared(&roots(&home), "bot", "", "proj");
    assert!(matches!(said, Declared::Unknown(why) if why.contains("not an absolute path")));
}
