//! Settings out of environments, as tables.

use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<Settings, String> {
    let set = |name: &str| {
        let home = ("HOME", "/home/u");
        let found = pairs
            .iter()
            .chain([&home])
            .find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    Settings::read(&set)
}

#[test]
fn unset_and_empty_mean_the_manuals_defaults() {
    for pairs in [
        &[][..],
        &[
            ("AGENT_DECK_ROOT", ""),
            ("SAFETY_POLL_S", ""),
            ("AGENT_DECK_PROFILE", ""),
        ],
    ] {
        let settings = read(pairs).unwrap();
        assert_eq!(settings.root, Path::new("/home/u/.agent-deck"));
        assert_eq!(settings.folder(), Path::new("/home/u/.agent-deck/watchdog"));
        assert_eq!(settings.spacing, Duration::from_secs(60));
        assert_eq!(settings.poll, Duration::from_secs(5));
        assert_eq!(settings.calm_poll, Duration::from_secs(15));
        assert_eq!(
            settings.profiles,
            Wanted::Named(vec![Profile::parse("default").unwrap()])
        );
        assert!(settings.process_watch);
        assert!(settings.warnings().is_empty());
        let Bin::Search(places) = settings.bin else {
            panic!("searched")
        };
        assert_eq!(places[0], Path::new("/usr/local/bin/agent-deck"));
        assert!(places.contains(&PathBuf::from("/home/u/.local/bin/agent-deck")));
    }
}

#[test]
fn an_error_names_variable_value_and_range() {
    for (name, value, allowed) in [
        ("MIN_GLOBAL_RESTART_INTERVAL_S", "0", "1 to 86400"),
        ("MIN_GLOBAL_RESTART_INTERVAL_S", "86401", "1 to 86400"),
        ("SAFETY_POLL_S", "5s", "1 to 300"),
        ("SAFETY_POLL_S", "-5", "1 to 300"),
        ("SAFETY_POLL_S", "1e2", "1 to 300"),
        ("SAFETY_POLL_S", "99999999999999999999999", "1 to 300"),
        ("POLLER_RESTART_DEDUP_S", "604801", "1 to 604800"),
        ("WAITING_PATROL_THRESHOLD_S", "ten", "1 to 86400"),
        ("WAITING_PATROL_NUDGE_DEDUP_S", "0", "1 to 604800"),
        ("PROCESS_WATCH", "no", "on or off"),
        ("AGENT_DECK_PROFILE", "a/b", "profile name"),
        ("AGENT_DECK_PROFILE", "a,,b", "profile name"),
        ("AGENT_DECK_ROOT", "relative", "absolute"),
        ("AGENT_DECK_ROOT", "/", "absolute"),
        ("AGENT_DECK_BIN", "agent-deck", "absolute"),
        ("HOME", "/", "absolute"),
        ("HOME", "u", "absolute"),
        ("TELEGRAM_ESCALATION_CHAT_ID", "a b", "chat"),
    ] {
        let error = read(&[(name, value)]).unwrap_err();
        for part in [name, value, allowed] {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}

#[test]
fn what_was_given_gives_the_same_settings_again() {
    let pairs = [
        ("SAFETY_POLL_S", "7"),
        ("AGENT_DECK_PROFILE", "a,b"),
        ("TMUX_TMPDIR", "/run/a=b"),
        ("PROCESS_WATCH", ""),
    ];
    let settings = read(&pairs).unwrap();
    assert_eq!(
        settings.calm_poll,
        Duration::from_secs(7),
        "a set one counts always"
    );
    let again = Settings::read(&|name| match name {
        "HOME" => Some(OsString::from("/home/u")),
        name => given_value(&settings.given, name),
    });
    assert_eq!(again.unwrap(), settings);
    let tmux = given_value(&settings.given, "TMUX_TMPDIR");
    assert_eq!(tmux, Some(OsString::from("/run/a=b")));
}

#[test]
fn a_short_spacing_is_accepted_with_a_warning() {
    let settings = read(&[("MIN_GLOBAL_RESTART_INTERVAL_S", "1")]).unwrap();
    assert_eq!(settings.spacing, Duration::from_secs(1));
    assert!(settings.warnings()[0].contains("MIN_GLOBAL_RESTART_INTERVAL_S=1"));
}

#[test]
fn profiles_are_one_a_list_or_all() {
    let named = |text: &str| read(&[("AGENT_DECK_PROFILE", text)]).unwrap().profiles;
    let profile = |text| Profile::parse(text).unwrap();
    assert_eq!(
        named("work, home,work"),
        Wanted::Named(vec![profile("work"), profile("home")])
    );
    assert_eq!(named("all"), Wanted::All);
}
