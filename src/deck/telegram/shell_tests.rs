//! Env files and scripts against what bash 5.2 made of them.

use super::*;

/// What is said of a file that stands alone.
enum Is {
    /// The value that bash gave, without CRs at its end.
    Folder,
    /// Nothing, and bash gave nothing.
    Nothing,
    /// Unknown, in this line.
    Unknown(usize),
}
use Is::{Folder, Nothing, Unknown};

/// A file, with `@` for the variable's name; what bash left in the environment
/// after sourcing it, in the home folder `/home/u`; what is said of it.
#[rustfmt::skip]
const FILES: &[(&str, Option<&str>, Is)] = &[
    ("export @=/x", Some("/x"), Folder),
    ("export @=/x\n", Some("/x"), Folder),
    ("export @=\"/x\"", Some("/x"), Folder),
    ("export @='/x'", Some("/x"), Folder),
    ("export @=/a\"b\"'c'd", Some("/abcd"), Folder),
    ("export @=\"/x y\"", Some("/x y"), Folder),
    ("export @=/x\\ y", Some("/x y"), Folder),
    ("export @=\"/a\\$b\\\"c\\\\d\\e\"", Some("/a$b\"c\\d\\e"), Folder),
    ("export @='/a\\b'", Some("/a\\b"), Folder),
    ("export @=/a\\b", Some("/ab"), Folder),
    ("  export\t@=/x  ", Some("/x"), Folder),
    ("export @=\"$HOME/tg/ops\"  # bot", Some("/home/u/tg/ops"), Folder),
    ("export @=/x # c", Some("/x"), Folder),
    ("export @=/x#c", Some("/x#c"), Folder),
    ("export @=/x;# c", Some("/x"), Folder),
    ("export @= # /x", Some(""), Unknown(1)),
    ("# export @=/x", None, Nothing),
    ("\n\n# c\nexport @=/x\n\n", Some("/x"), Folder),
    ("export @=$HOME/x", Some("/home/u/x"), Folder),
    ("export @=${HOME}/x", Some("/home/u/x"), Folder),
    ("export @=\"${HOME}/x\"", Some("/home/u/x"), Folder),
    ("export @='$HOME/x'", Some("$HOME/x"), Unknown(1)),
    ("export @=~/x", Some("/home/u/x"), Folder),
    ("export @=~", Some("/home/u"), Folder),
    ("export @=\"~/x\"", Some("~/x"), Unknown(1)),
    ("export @=~\"/x\"", Some("~/x"), Unknown(1)),
    ("export @=/a:~/b", Some("/a:/home/u/b"), Folder),
    ("export @=~root/x", Some("/root/x"), Unknown(1)),
    ("export @=\\~/x", Some("~/x"), Unknown(1)),
    ("B=/b\nexport @=$B/x", Some("/b/x"), Folder),
    ("B=/b\nexport @=\"${B}x\"", Some("/bx"), Folder),
    ("export B=/b C=/c\nexport @=$B$C", Some("/b/c"), Folder),
    ("B=/b; B+=/c\nexport @=$B", Some("/b/c"), Folder),
    ("export @=$NOPE/x", Some("/x"), Unknown(1)),
    ("B=/b\nunset B\nexport @=$B/x", Some("/x"), Unknown(3)),
    ("B=$(date)\nexport @=/x", Some("/x"), Folder),
    ("B=$(echo /e)\nexport @=$B/x", Some("/e/x"), Unknown(2)),
    ("B=`date`;export @=/x", Some("/x"), Folder),
    ("export @=$(pwd)/x", Some("/home/u/x"), Unknown(1)),
    ("export @=`pwd`/x", Some("/home/u/x"), Unknown(1)),
    ("\n\nexport @=\"$(pwd)/x\"", Some("/home/u/x"), Unknown(3)),
    ("export @=${B:-/d}", Some("/d"), Unknown(1)),
    ("export @=${HOME%/*}", Some("/tmp/tele"), Unknown(1)),
    ("export @=$1/x", Some("/x"), Unknown(1)),
    ("export @=$((1+1))", Some("2"), Unknown(1)),
    ("export @=$'/x'", Some("/x"), Unknown(1)),
    ("export @=$\"/x\"", Some("/x"), Folder),
    ("export @=/x$", Some("/x$"), Folder),
    ("export @=\"/x$\"", Some("/x$"), Folder),
    ("export @=/a\nexport @=/b", Some("/b"), Folder),
    ("export @=/a\nunset @", None, Nothing),
    ("export @=/a;export @=/b", Some("/b"), Folder),
    ("export @=/a && export @=/b", Some("/b"), Folder),
    ("false && export @=/b", None, Unknown(1)),
    ("export @=/a || true", Some("/a"), Unknown(1)),
    ("[ -n \"$B\" ] && export @=/b", None, Unknown(1)),
    ("@=/x", None, Nothing),
    ("@=/x\nexport @", Some("/x"), Folder),
    ("export @\n@=/x", Some("/x"), Folder),
    ("set -a\n@=/x", Some("/x"), Folder),
    ("set -a\n@=/x\nset +a", Some("/x"), Folder),
    ("set -a; set +a\n@=/x", None, Nothing),
    ("set -o allexport\n@=/x", Some("/x"), Folder),
    ("set -ea\n@=/x", Some("/x"), Folder),
    ("@=/x\nset -a", None, Nothing),
    ("declare -x @=/x", Some("/x"), Folder),
    ("typeset -x @=/x", Some("/x"), Folder),
    ("export -n @=/x", None, Nothing),
    ("export -- @=/x", Some("/x"), Folder),
    ("export B=1 @=/x C=2", Some("/x"), Folder),
    ("export \"@=/x\"", Some("/x"), Folder),
    ("export \"@\"=$HOME/x", Some("/home/u/x"), Unknown(1)),
    ("export '@'=/x", Some("/x"), Folder),
    ("\"export\" @=/x", Some("/x"), Folder),
    ("\\export @=/x", Some("/x"), Folder),
    ("export @=/a\\\n/b", Some("/a/b"), Folder),
    ("export @=\"/a\\\n/b\"", Some("/a/b"), Folder),
    ("export @='/a\\\n/b'", Some("/a\\\n/b"), Unknown(1)),
    ("export \\\n@=/x", Some("/x"), Folder),
    ("ex\\\nport @=/x", Some("/x"), Folder),
    ("export @=/x\\", Some("/x\\"), Folder),
    ("export @=/x\r\n", Some("/x\r"), Folder),
    ("export @=\"/x\"\r\n", Some("/x\r"), Folder),
    ("# c\r\nexport @=\"$HOME/x\"  # c\r\n", Some("/home/u/x"), Folder),
    ("B=/b\r\nexport @=$B/x\r\n", Some("/b\r/x\r"), Unknown(2)),
    ("set -a\r\n@=/x\r\n", None, Unknown(2)),
    ("B=1\r\nC=2 \r\nexport @=/x\r\n", Some("/x\r"), Folder),
    ("export @=/x/../y/./z//", Some("/x/../y/./z//"), Folder),
    ("export @=/{a,b}", Some("/b"), Unknown(1)),
    ("export @=/*", Some("/*"), Folder),
    ("export @=\"/x", None, Unknown(1)),
    ("export @=/x\nB=\"open", Some("/x"), Folder),
    ("export @=/x; B=\"open", None, Unknown(1)),
    ("export @=(/x)", None, Unknown(1)),
    ("export @=/x > /dev/null", Some("/x"), Unknown(1)),
    ("export @=/x | cat", None, Unknown(1)),
    ("export @=/x &", None, Unknown(1)),
    ("if true; then\nexport @=/x\nfi", Some("/x"), Unknown(1)),
    ("f() { export @=/x; }\nf", Some("/x"), Unknown(1)),
    ("eval \"export @=/x\"", Some("/x"), Unknown(1)),
    ("eval \"B=1\"\nexport @=/x", Some("/x"), Folder),
    ("eval \"B=1\"\n@=/x", None, Unknown(2)),
    ("source /nope\nexport @=/x", Some("/x"), Folder),
    (". /nope", None, Unknown(1)),
    ("for v in 1; do B=1; done\nexport @=/x", Some("/x"), Unknown(1)),
    ("if true; then B=1; fi", None, Nothing),
    ("while read -r l; do export \"$l\"; done <<< \"B=1\"", None, Unknown(1)),
    ("export $(echo B=1)", None, Unknown(1)),
    ("export $(echo @=/x)", Some("/x"), Unknown(1)),
    (": ${@:=/x}\nexport @", Some("/x"), Unknown(1)),
    ("export B=${@:=/x}", None, Unknown(1)),
    ("umask 077\nexport @=/x", Some("/x"), Folder),
    ("B=1 C=2 export @=/x", Some("/x"), Unknown(1)),
    ("B=1 true\nexport @=/x", Some("/x"), Folder),
    ("readonly @=/x\nexport @=/y", Some("/x"), Unknown(1)),
    ("cat <<E\nexport @=/x\nE", None, Unknown(1)),
    ("return 0\nexport @=/x", None, Unknown(1)),
    ("export @=", Some(""), Unknown(1)),
    ("export @=\"\"", Some(""), Unknown(1)),
    ("export @=x/y", Some("x/y"), Unknown(1)),
    ("unset -f @\nexport @=/x", Some("/x"), Folder),
    ("export @=/é", Some("/é"), Folder),
    ("@+=/x; export @", Some("/x"), Folder),
    ("export @=/a; @+=/b", Some("/a/b"), Folder),
    ("export @ = /x", None, Nothing),
    ("typeset -x @=/x -n @", Some("/x"), Folder),
    ("export @=/x -n @", Some("/x"), Folder),
    ("declare -x -n @=B", Some("B"), Unknown(1)),
    ("B={ export @=/x", Some("/x"), Unknown(1)),
    ("HOME=/h\nexport @=~/x", Some("/h/x"), Folder),
    ("export @=\"/x\" B=\"it's\" C='q\"q'", Some("/x"), Folder),
    ("B='multi\nline'\nexport @=/x", Some("/x"), Folder),
];

/// Reads pieces one after another, with `@` for the variable's name.
fn after(pieces: &[(&str, &str)]) -> Declared {
    let mut shell = Shell::new(Path::new("/home/u"));
    for (name, text) in pieces {
        shell.begin((*name).to_owned());
        shell.run(&text.replace('@', VARIABLE));
    }
    shell.declared()
}

fn folder(path: &str) -> Declared {
    Declared::Folder(normalised(Path::new(path)))
}

#[test]
fn files_mean_what_bash_makes_of_them() {
    for (text, bash, is) in FILES {
        let said = after(&[("x.env", text)]);
        match (is, bash) {
            (Folder, Some(value)) => {
                assert_eq!(said, folder(value.trim_end_matches('\r')), "{text:?}");
            }
            (Nothing, None) => assert_eq!(said, Declared::Nothing, "{text:?}"),
            (Unknown(line), _) => {
                let Declared::Unknown(why) = &said else {
                    panic!("{text:?}: {said:?}");
                };
                let place = format!("x.env line {line}: ");
                assert!(why.starts_with(&place), "{text:?}: {why}");
            }
            (Folder | Nothing, _) => panic!("against bash: {text:?}"),
        }
    }
}

#[test]
fn reasons_do_not_quote_the_file() {
    for (text, _, _) in FILES {
        let secret = format!("export TELEGRAM_BOT_TOKEN=123:SECRET\n{text}\nB='SECRET");
        if let Declared::Unknown(why) = after(&[("x.env", &secret)]) {
            assert!(!why.contains("SECRET"), "{why}");
        }
    }
}

#[test]
fn pieces_are_read_by_one_shell() {
    let cases: &[(&str, &str, Declared)] = &[
        ("export @=/a", "export @=/b", folder("/b")),
        ("export @=/a", "", folder("/a")),
        ("export @=/a", "unset @", Declared::Nothing),
        // Exported once, a plain assignment is enough.
        ("export @=/a", "@=/b", folder("/b")),
        ("set -a", "@=/b", folder("/b")),
        ("B=/b", "export @=$B/c", folder("/b/c")),
        ("B=1", "@=/b", Declared::Nothing),
        ("HOME=/h", "export @=~/x", folder("/h/x")),
    ];
    for (first, second, want) in cases {
        let said = after(&[("a.env", first), ("b.env", second)]);
        assert_eq!(&said, want, "{first:?}, {second:?}");
    }
}

/// agent-deck joins the pieces with `&&`: what comes after a failure is skipped.
#[test]
fn a_piece_that_may_fail_makes_later_changes_unknown() {
    let fails = [
        "false",
        "[ -n \"$B\" ] && export C=1",
        "B=$(date)",
        "echo a | cat",
        "if [ -f x ]; then B=1; fi",
        "direnv allow",
        "B=1\r\n\r\n",
        "export 1B=x",
        "export \"$B\"",
        "unset $B",
        "export B=\"open",
    ];
    for text in fails {
        let hidden = text.ends_with("$B") || text.ends_with("$B\"");
        let before = after(&[("a.env", "export @=/a"), ("b.env", text)]);
        assert!(hidden || before == folder("/a"), "{text:?}");
        let same = after(&[("b.env", text), ("c.env", "export B=2")]);
        assert!(hidden || same == Declared::Nothing, "{text:?}");
        let pieces = [("b.env", text), ("c.env", "B=1"), ("d.env", "export @=/d")];
        match after(&pieces) {
            Declared::Unknown(why) => assert!(why.starts_with("b.env: may end"), "{why}"),
            said => panic!("{text:?}: {said:?}"),
        }
    }
    for text in [
        "",
        "# c",
        "true",
        "export B=$(date)",
        "B=1",
        ": $(date)",
        "set -eu",
    ] {
        let said = after(&[("b.env", text), ("d.env", "export @=/d")]);
        assert_eq!(said, folder("/d"), "{text:?}");
    }
}

#[test]
fn scripts_that_do_not_touch_it_say_nothing() {
    let scripts = [
        "if command -v nvm >/dev/null; then\n  PATH=$PATH:/x\nfi\n",
        "case $- in *i*) ;; *) B=1;; esac",
        "for f in a b; do export B=$f; done",
        "g() { echo \"$1\"; }",
        "export PATH=\"$HOME/bin:$PATH\"",
        "ulimit -n 4096",
    ];
    for text in scripts {
        assert_eq!(after(&[("s", text)]), Declared::Nothing, "{text:?}");
    }
    let touching = [
        "eval \"$(direnv hook bash)\"",
        "if true; then . ~/.secrets; fi",
        "[ -s x ] && \\. x",
        "for v in $(cat .env); do export $v; done",
        "for v in $(cat .env); do export \"$v\"; done",
        "for v in $(cat .env); do declare -gx \"$v\"; done",
        "if true; then export `cat .env`; fi",
        "if true; then export @=/x; fi",
        "while read -r k v; do export \"$k\"=\"$v\"; done < .env",
    ];
    for text in touching {
        match after(&[("s", text)]) {
            Declared::Unknown(why) => assert!(why.starts_with("s line 1: needs a shell"), "{why}"),
            said => panic!("{text:?}: {said:?}"),
        }
    }
}

#[test]
fn settings_are_taken_as_they_stand() {
    let mut shell = Shell::new(Path::new("/home/u"));
    shell.begin("config.toml".to_owned());
    shell.export("B", "/b");
    shell.export(VARIABLE, "/c it's $B");
    assert!(shell.holds("/c it's $B") && !shell.holds("/c"));
    assert_eq!(shell.declared(), folder("/c it's $B"));
    for value in ["", "~/x", "$HOME/x", "x", "/a\nb", "/a\u{fffd}"] {
        let mut shell = Shell::new(Path::new("/home/u"));
        shell.begin("config.toml".to_owned());
        shell.export(VARIABLE, value);
        match shell.declared() {
            Declared::Unknown(why) => assert!(why.starts_with("config.toml: T"), "{why}"),
            said => panic!("{value:?}: {said:?}"),
        }
    }
}

#[test]
fn what_was_lost_is_found_by_a_later_export() {
    let mut shell = Shell::new(Path::new("/home/u"));
    shell.begin("a".to_owned());
    shell.lose("so");
    shell.run("TELEGRAM_STATE_DIR=/x");
    assert!(!shell.holds("/x"));
    shell.run("export TELEGRAM_STATE_DIR=/y");
    assert_eq!(shell.declared(), folder("/y"));
}

#[test]
fn hostile_files_are_bounded() {
    // A variable that doubles with each line.
    let mut text = "A=xxxxxxxxxxxxxxxx\n".to_owned();
    text.push_str(&"A=$A$A\n".repeat(60));
    text.push_str("export @=/$A");
    let said = after(&[("x.env", &text)]);
    assert!(matches!(said, Declared::Unknown(_)), "{said:?}");
    for open in [
        "$(",
        "\"$(",
        "`",
        "${",
        "'",
        "(",
        "export @=$(",
        "A=\"$(\"$(",
    ] {
        for count in [1, 3, 50_000] {
            after(&[("x.env", &open.repeat(count))]);
            after(&[("x.env", &format!("A={}", open.repeat(count)))]);
        }
    }
    let lines = "export B=1 # c\n".repeat(40_000) + "export @=/x\n";
    assert_eq!(after(&[("x.env", &lines)]), folder("/x"));
    // Every cut of every file ends in some answer.
    for (text, _, _) in FILES {
        for (at, _) in text.char_indices() {
            after(&[("x.env", &text[..at])]);
        }
    }
}
