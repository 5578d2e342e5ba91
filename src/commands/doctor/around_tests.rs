//! Tests of variables, paths and words. They know no agent.

use super::*;
use crate::scratch::Scratch;

fn seen(pairs: &[(&str, &str)]) -> Seen {
    let mut seen = Seen::default();
    seen.set("HOME", "/home/u");
    for (name, value) in pairs {
        seen.set(name, value);
    }
    seen
}

#[test]
fn places_are_compared_by_where_they_lead() {
    let none: [(&str, String); 0] = [];
    let differs = |watcher: &[(&str, &str)], session: &[(&str, &str)]| {
        disagreements(&seen(watcher), &[seen(session)], &PLACES)
    };
    for (watcher, session) in [
        (&[][..], &[][..]),
        (&[("TMUX_TMPDIR", "/tmp")], &[]),
        (&[("TMUX_TMPDIR", "/x/")], &[("TMUX_TMPDIR", "/x")]),
        (
            &[("TMUX_TMPDIR", "/x")],
            &[("TMUX", "/x/tmux-1000/default,4,0")],
        ),
        // A socket of its own name says nothing.
        (&[], &[("TMUX", "/x/socket,4,0")]),
        (&[("XDG_DATA_HOME", "/home/u/.local/share")], &[]),
        (&[("XDG_CONFIG_HOME", "relative")], &[]),
        // Another home, other files in it.
        (&[("XDG_DATA_HOME", "/x")], &[("HOME", "/y")]),
    ] {
        assert_eq!(differs(watcher, session), none, "{watcher:?} {session:?}");
    }
    for (watcher, session, name, value) in [
        (&[][..], &[("TMUX_TMPDIR", "/x")][..], "TMUX_TMPDIR", "/x"),
        (&[("TMUX_TMPDIR", "/x")], &[], "TMUX_TMPDIR", "/tmp"),
        (
            &[],
            &[("TMUX", "/x/tmux-0/default,4,0")],
            "TMUX_TMPDIR",
            "/x",
        ),
        (&[], &[("XDG_DATA_HOME", "/d")], "XDG_DATA_HOME", "/d"),
        (
            &[("XDG_CONFIG_HOME", "/c")],
            &[],
            "XDG_CONFIG_HOME",
            "/home/u/.config",
        ),
    ] {
        let found = differs(watcher, session);
        assert_eq!(found, [(name, value.to_owned())], "{watcher:?} {session:?}");
    }
}

#[test]
fn only_known_variables_are_kept() {
    let mut seen = seen(&[
        ("TELEGRAM_BOT_TOKEN", "secret"),
        ("PATH", "/a"),
        ("PATH", "/b"),
    ]);
    assert_eq!(
        (seen.get("PATH"), seen.get("TELEGRAM_BOT_TOKEN")),
        ("/b", "")
    );
    seen.set("PATH", "");
    assert_eq!(seen.get("PATH"), "");
    assert!(!format!("{seen:?}").contains("secret"));
    assert!(Seen::of_process(u32::MAX).is_none());
}

#[test]
fn what_lacks_is_known_with_its_folder() {
    use std::os::unix::fs::PermissionsExt;
    let home = Scratch::new();
    for file in ["bin/claude-x", ".local/bin/agent-deck", "opt/agent-deck"] {
        let file = home.write(file, "");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    home.write("bin/plain", "");
    let (bin, opt) = (home.join("bin"), home.join("opt"));
    let path = format!("relative:{}:{}", bin.display(), opt.display());
    assert_eq!(on_path(&path, "claude-x"), Some(bin.clone()));
    assert_eq!(on_path(&path, "plain"), None);
    let mut around = Around {
        agents: Err("not seen".to_owned()),
        daemon: None,
        ours: seen(&[("PATH", &path)]),
        programs: Vec::new(),
    };
    around.programs = around.find(&["claude-x".into(), DECK.into(), "plain".into()]);
    assert_eq!(around.programs.len(), 2);
    assert_eq!(around.lacking(&path, home.path()).len(), 0);
    // agent-deck is looked for in more places than PATH.
    let lacking = around.lacking("/usr/bin", home.path());
    assert_eq!(lacking, [&("claude-x".to_owned(), bin.clone())]);
    let set = with_folders("/usr/bin", &lacking);
    assert_eq!(set, format!("{}:/usr/bin", bin.display()));
    assert!(
        around
            .short_path()
            .ends_with(":/usr/local/bin:/usr/bin:/bin")
    );
}

#[test]
fn words_and_paths_are_fit_to_be_pasted() {
    assert_eq!(quoted("/a/b-1.c"), "/a/b-1.c");
    assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    assert_eq!(quoted(""), "''");
    let home = Path::new("/home/u");
    assert_eq!(typed(Path::new("/home/u/.x/y"), home), "~/.x/y");
    assert_eq!(typed(Path::new("/home/u/my bin/y"), home), "~/'my bin/y'");
    assert_eq!(typed(Path::new("/opt/y"), home), "/opt/y");
}
