//! Tests of control groups and of logind's settings, as tables.

use super::super::Light;
use super::*;

/// Judges a group: `K`, a logout ends what the session started; `L`, the user's
/// services outlive it; `l`, they do not; `P`, `KillMode=process`.
fn check(group: &str, facts: &str, light: Light, word: &str) {
    let has = |mark| facts.contains(mark);
    let lingers = match (has('L'), has('l')) {
        (false, false) => None,
        (lingers, _) => Some(lingers),
    };
    let facts = Facts {
        ours: "other-watchdog.service",
        kill_mode: if has('P') { "process" } else { "mixed" },
        lingers,
        kills: has('K'),
    };
    let check = judge(group, &facts);
    assert_eq!(check.light, light, "{group}: {check:?}");
    assert!(check.sentence.contains(word), "{group}: {check:?}");
    assert_eq!(check.mend.is_empty(), light == Light::Green, "{group}");
}

#[test]
fn groups_are_judged_by_who_could_end_them() {
    let (green, yellow, red) = (Light::Green, Light::Yellow, Light::Red);
    let user = "/user.slice/user-1000.slice";
    let below = |what: &str| format!("{user}/user@1000.service/{what}");
    let session = format!("{user}/session-3.scope");
    check("", "", green, "no group");
    check("/", "lK", green, "no group");
    check(&session, "l", green, "leaves it alone");
    check(&session, "LK", red, "KillUserProcesses");
    let ours = below("app.slice/agent-deck-watchdog.service");
    check(&ours, "LP", green, "harmless");
    check(&ours, "L", red, "stop the watchdog");
    check(
        &below("other-watchdog.service"),
        "",
        red,
        "stop the watchdog",
    );
    check(&below("tmux-spawn-1.scope"), "LK", green, "nothing ends");
    check(&below("tmux-spawn-1.scope"), "", green, "nothing ends");
    check(&below("tmux-spawn-1.scope"), "l", yellow, "last logout");
    check(&below("app.slice/ide.service"), "L", yellow, "ide.service");
    check(
        &below("app.slice/my-tmux.service"),
        "l",
        yellow,
        "last logout",
    );
    check("/system.slice/web.service", "L", yellow, "web.service");
    check("/system.slice/cron.service", "l", green, "cron.service");
    check("/docker/0123", "l", green, "0123");
}

#[test]
fn groups_are_read_in_both_hierarchies() {
    for (text, group) in [
        ("0::/user.slice/a.scope\n", "/user.slice/a.scope"),
        ("12:cpu:/x\n1:name=systemd:/b.service\n0::/\n", "/b.service"),
        ("1:name=systemd:/b\n0::/c\n", "/c"),
        ("0::/\n", ""),
        ("garbage", ""),
        ("", ""),
    ] {
        assert_eq!(group_in(text), group, "{text}");
    }
    assert_eq!(
        service_in("/u/user@1000.service/app.slice/x.service/sub"),
        Some("x.service")
    );
    assert_eq!(service_in("/u/user@1000.service/a.scope"), None);
}

#[test]
fn logind_is_read_with_what_counts_without_it() {
    for (text, kills) in [
        ("#KillUserProcesses=no", false),
        ("#KillUserProcesses=yes", true),
        (
            "#KillUserProcesses=yes\n[Login]\nKillUserProcesses=no",
            false,
        ),
        (
            "[Login]\nKillUserProcesses=yes\n#KillUserProcesses=no",
            true,
        ),
        ("", false),
    ] {
        assert_eq!(kills_processes(text).unwrap_or(false), kills, "{text}");
    }
}
