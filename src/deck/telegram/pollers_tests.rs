//! Processes as `ps` prints them on three systems, and their environments.

use super::*;
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The plugin's command line.
const RUN: &str = "bun run --cwd /home/u/.claude/plugins/cache/official/telegram/0.0.7 --shell=bun --silent start";

const PROCPS: &str = "
      1       0 root     Ss   /sbin/init splash
      2       0 root     S    [kthreadd]
    311       1 syslog   Ssl  /usr/sbin/rsyslogd -n
   1200       1 u        Ss   tmux new-session -d -s agentdeck_ops_1a2b3c4d
   1300    1200 u        Sl+  claude --session-id x --channels plugin:telegram@claude-plugins-official
   1400    1300 u        Sl+  RUN
   1401    1400 u        Sl+  /home/u/.bun/bin/bun server.ts
   1500    1300 u        S+   /bin/sh -c pgrep -af 'bun.*telegram'
   1501    1500 u        S+   pgrep -af bun.*telegram
   1600       1 u        Sl   /home/u/.bun/bin/bun run --cwd /opt/Telegram-Fork start
   1601    1600 u        Sl   bun /opt/Telegram-Fork/telegram.ts
   1700    1300 u        Z+   [bun] <defunct>
   1800       1 other    Sl   RUN
   1900    1300 u        Sl+  bun run --cwd /home/u/.claude/plugins/cache/official/discord/0.0.4 start
   1901    1900 u        Sl+  bun server.ts
   1950       1 u+       SNl  /usr/bin/bundle exec telegram
   1960       1 u        R<   node /srv/telegram/bun.js
   2000    1300 u        S+   watchdog
   2001    2000 u        R+   ps -A -o pid=,ppid=,user=,stat=,args=
";

const BUSYBOX: &str = "
    1     0 root     S    /sbin/init
    2     0 root     SW   [kthreadd]
    3     2 root     IW<  [kworker/R-rcu_g]
 1300     1 u        S    claude --channels plugin:telegram@x
 1400  1300 u        S    RUN
 1401  1400 u        S    bun server.ts
 1700  1300 u        Z    [bun]
 1800     1 other    S    RUN
 2000  1300 u        S    watchdog
 2001  2000 u        R    ps -A -o pid=,ppid=,user=,stat=,args=
";

const MACOS: &str = "
    1     0 root             Ss   /sbin/launchd
  310     1 _windowserver    Ss   /System/Library/WindowServer -daemon
 1300     1 u                S+   claude --channels plugin:telegram@x
 1400  1300 u                S+   RUN
 1401  1400 u                S+   /opt/homebrew/bin/bun server.ts
 1700  1300 u                Z+   <defunct>
 1750  1300 u                ?s   (bun)
 1800     1 other            S    RUN
 2000  1300 u                U+   watchdog
 2001  2000 root             R+   ps -Aww -o pid=,ppid=,user=,stat=,args=
";

const ME: u32 = 2000;

fn rows(text: &str) -> Vec<PsRow> {
    let text = text.trim_start_matches('\n').replace("RUN", RUN);
    ps_rows(text.as_bytes(), ME).unwrap()
}

/// Pollers with an environment from a table; others have been looked into in vain.
fn found(text: &str, env: &[(u32, StateDir)]) -> Result<Vec<(u32, Option<PathBuf>)>, String> {
    let env: BTreeMap<u32, StateDir> = env.iter().cloned().collect();
    let mut look = |pid| env.get(&pid).cloned().ok_or(format!("asked {pid}"));
    let found = pollers(&rows(text), &mut look)?;
    Ok(found.into_iter().map(|p| (p.pid, p.folder)).collect())
}

fn set(value: &str) -> StateDir {
    StateDir::Set(value.into())
}

#[test]
fn a_tree_counts_once_and_nothing_else_counts() {
    let env = [(1400, set("/tg/bot/")), (1600, StateDir::Unset)];
    let bot = (1400, Some(PathBuf::from("/tg/bot")));
    assert_eq!(found(PROCPS, &env), Ok(vec![bot.clone(), (1600, None)]));
    assert_eq!(found(BUSYBOX, &env), Ok(vec![bot.clone()]));
    assert_eq!(found(MACOS, &env), Ok(vec![bot]));
}

#[test]
fn rows_are_read_whole() {
    for text in [PROCPS, BUSYBOX, MACOS] {
        let rows = rows(text);
        assert_eq!(rows.len(), text.trim().lines().count());
        let row = |pid| rows.iter().find(|row| row.pid == pid).unwrap();
        assert_eq!(row(1400).args, RUN.as_bytes());
        assert_eq!(row(1400).parent, 1300);
        assert!(row(1400).own && !row(1400).zombie);
        assert!(row(1700).own && row(1700).zombie);
        assert!(!row(1800).own && !row(1).own && row(ME).own);
    }
    assert!(!rows(PROCPS).iter().find(|row| row.pid == 1950).unwrap().own);
}

#[test]
fn ancestors_lead_up_to_the_first() {
    let mut env = |_| Ok(set("/x"));
    let found = pollers(&rows(PROCPS), &mut env).unwrap();
    assert_eq!(found[0].ancestors, [1300, 1200, 1]);
    assert_eq!(found[0].connected, None);
    // An orphan, and a parent that is not listed.
    assert_eq!(found[1].ancestors, [1]);
    let odd = "  5 7 u S bun telegram\n  7 5 u S sh\n  9 8 u S bun telegram\n 10 10 u S bun telegram\n2000 1 u S me\n";
    let found = pollers(&rows(odd), &mut env).unwrap();
    let ancestors: Vec<&[u32]> = found.iter().map(|p| &*p.ancestors).collect();
    assert_eq!(ancestors, [&[7][..], &[8], &[]]);
}

/// Programs and arguments that make a poller, or do not.
#[test]
fn bun_is_the_program_and_telegram_in_its_arguments() {
    for (args, polls) in [
        ("bun telegram", true),
        ("bun run --cwd /x/telegram start", true),
        ("/opt/My/bun server.ts --name Telegram", true),
        ("bun.exe /x/telegram.ts", true),
        ("bun", false),
        ("bun server.ts", false),
        ("bunx telegram", false),
        ("bunny telegram", false),
        ("xbun telegram", false),
        ("telegram bun", false),
        ("sh -c bun telegram", false),
        ("node bun telegram", false),
        ("/x/telegram/bun", false),
        ("/x/telegram/bun server.ts", false),
        // The agent itself under bun.
        (
            "bun /x/claude --channels plugin:telegram@claude-plugins-official",
            false,
        ),
        (
            "bun /x/claude --channels plugin:telegram@x /x/telegram",
            true,
        ),
    ] {
        let text = format!(" 7 1 u S {args}\n2000 1 u S me\n");
        let found = found(&text, &[(7, StateDir::Unset)]).unwrap();
        assert_eq!(!found.is_empty(), polls, "{args}");
    }
    // Shown twice.
    let twice = " 7 1 u S bun telegram\n 7 1 u S bun telegram\n2000 1 u S me\n";
    assert_eq!(found(twice, &[(7, StateDir::Unset)]), Ok(vec![(7, None)]));
    // A poller below an agent that runs under bun.
    let tree = "  7 1 u S bun claude --channels plugin:telegram@x\n 8 7 u S RUN\n2000 1 u S me\n";
    assert_eq!(found(tree, &[(8, StateDir::Unset)]), Ok(vec![(8, None)]));
}

#[test]
fn folders_are_exact() {
    let env = |value: &str| {
        let found = found(BUSYBOX, &[(1400, set(value))]).unwrap();
        found[0].1.clone().unwrap()
    };
    let bot = PathBuf::from("/nowhere/tg/bot");
    for same in [
        "/nowhere/tg/bot",
        "/nowhere/tg/bot/",
        "/nowhere//tg/./bot",
        "/nowhere/tg/bot\r",
    ] {
        assert_eq!(env(same), bot, "{same:?}");
    }
    for other in [
        "/nowhere/tg/bot2",
        "/nowhere/tg/bo",
        "/nowhere/tg",
        "nowhere/tg/bot",
        "",
        "/nowhere/tg/Bot",
    ] {
        assert_ne!(env(other), bot, "{other:?}");
    }
}

#[test]
fn who_vanishes_is_no_poller_and_who_hides_is_an_error() {
    assert_eq!(found(BUSYBOX, &[(1400, StateDir::Gone)]), Ok(vec![]));
    assert_eq!(found(BUSYBOX, &[]), Err("asked 1400".to_owned()));
}

#[test]
fn what_is_no_list_is_an_error() {
    let good = "    1     0 root     S    init\n 2000     1 u        S    me\n";
    assert!(ps_rows(good.as_bytes(), ME).is_ok());
    for (text, why) in [
        ("", "does not show this process"),
        ("\n", "does not show this process"),
        (
            "  PID  PPID USER     STAT COMMAND\n 2000     1 u        S    me\n",
            "cannot be read",
        ),
        ("ps: bad -o argument 'uid'\n", "does not show this process"),
        (
            "    1     0 root     S    init\n",
            "does not show this process",
        ),
        (
            "    1     0 root     S    init\n 2000     1 u        S    me",
            "ends within a line",
        ),
        (
            "    1     0 root     S    init\n 2000     1 u        S    me\n 20",
            "cannot be read",
        ),
        (
            "    1     0 root     S    init\n 2000     1 u        S    me\n 20\n",
            "cannot be read",
        ),
        (
            "    1     0 root     S    a\nb\n 2000     1 u        S    me\n",
            "cannot be read",
        ),
        (
            "    1     0 j doe    S    init\n 2000     1 u        S    me\n",
            "cannot be read",
        ),
        (
            " 2000     1 u        S    me\n    9     1 DOM\\j doe S    bun telegram\n",
            "cannot be read",
        ),
        (
            "   -1     0 root     S    init\n 2000     1 u        S    me\n",
            "cannot be read",
        ),
        (
            "99999999999  0 root     S    init\n 2000     1 u        S    me\n",
            "cannot be read",
        ),
    ] {
        let error = ps_rows(text.as_bytes(), ME).unwrap_err();
        assert!(error.contains(why), "{text:?}: {error}");
    }
    // Any bytes in arguments are fine.
    let odd = b"    1     0 root     S    \xff\xfe  x \n 2000     1 u        S    \n";
    assert_eq!(ps_rows(odd, ME).unwrap().len(), 2);
    let text = PROCPS.trim_start();
    for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
        let _ = ps_rows(&text.as_bytes()[..at], ME);
    }
}

#[test]
fn the_real_ps_is_read() {
    let output = Command::new("ps")
        .args(PS_ARGS)
        .envs(PS_ENV)
        .env("LC_ALL", "C")
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return;
    };
    let rows = ps_rows(&output.stdout, std::process::id()).unwrap();
    let me = rows
        .iter()
        .find(|row| row.pid == std::process::id())
        .unwrap();
    let test = std::env::args().next().unwrap();
    assert!(me.own && !me.zombie && me.args.starts_with(test.as_bytes()));
}

#[test]
fn environments_are_read_from_proc() {
    let proc = Scratch::new();
    let at = |pid| in_proc(proc.path(), pid);
    for (pid, environ, want) in [
        (10, "A=1\0TELEGRAM_STATE_DIR=/x y\0B=2\0", set("/x y")),
        (
            11,
            "A=1\0XTELEGRAM_STATE_DIR=/x\0TELEGRAM_STATE_DIRS=/y\0",
            StateDir::Unset,
        ),
        (12, "TELEGRAM_STATE_DIR=\0", set("")),
        (
            13,
            "A=TELEGRAM_STATE_DIR=/x\0TELEGRAM_STATE_DIR=/a\n=b\0",
            set("/a\n=b"),
        ),
    ] {
        proc.write(&format!("{pid}/environ"), environ);
        assert_eq!(at(pid), Ok(want), "{environ:?}");
    }
    assert_eq!(at(99), Ok(StateDir::Gone));
    // Gone while it was looked at; ended and not reaped.
    proc.folder("20");
    assert_eq!(at(20), Ok(StateDir::Gone));
    proc.write("21/environ", "");
    proc.write("21/cmdline", "");
    assert_eq!(at(21), Ok(StateDir::Gone));
    // It runs, and its environment cannot be seen.
    proc.write("22/environ", "");
    proc.write("22/cmdline", "bun\0telegram\0");
    proc.folder("23/environ");
    for pid in [22, 23] {
        assert_eq!(
            at(pid),
            Err(format!("the environment of process {pid} cannot be read"))
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_process_is_looked_into() {
    let mut child = Command::new("sleep")
        .arg("600")
        .env(VARIABLE, "/tg/bot")
        .spawn()
        .unwrap();
    // Until it has become `sleep`, it shows what this process had.
    crate::scratch::until("environment", || {
        environment(child.id()) == Ok(set("/tg/bot"))
    });
    child.kill().unwrap();
    crate::scratch::until("zombie", || environment(child.id()) == Ok(StateDir::Gone));
    child.wait().unwrap();
    assert_eq!(environment(child.id()), Ok(StateDir::Gone));
}

#[test]
fn environments_are_read_from_ps() {
    let run = "bun run --cwd /x/telegram start";
    for (text, want) in [
        (
            format!("{run} HOME=/Users/u TELEGRAM_STATE_DIR=/tg/bot PATH=/bin\n"),
            set("/tg/bot"),
        ),
        (
            format!("{run} PATH=/bin TELEGRAM_STATE_DIR=/tg/my bot  x\n"),
            set("/tg/my bot  x"),
        ),
        (
            format!("{run} TELEGRAM_STATE_DIR=/tg/a=b HOME=/h\n"),
            set("/tg/a=b"),
        ),
        (format!("{run} TELEGRAM_STATE_DIR= HOME=/h\n"), set("")),
        (
            format!("{run} HOME=/h XTELEGRAM_STATE_DIR=/tg/bot\n"),
            StateDir::Unset,
        ),
        // Before the command line, as another system prints it.
        (
            format!("HOME=/h TELEGRAM_STATE_DIR=/tg/bot _=/x {run}\n"),
            set("/tg/bot"),
        ),
        (String::new(), StateDir::Gone),
        ("\n".to_owned(), StateDir::Gone),
    ] {
        assert_eq!(environment_of(text.as_bytes()), Ok(want), "{text:?}");
    }
    for text in [
        run.to_owned(),
        format!("{run}\n"),
        format!("{run} TELEGRAM_STATE_DIR=/tg/bot\n"),
        format!("{run} HOME=/h TELEGRAM_STATE_DIR=/a TELEGRAM_STATE_DIR=/b\n"),
        format!("{run} HOME=/h\n{run} HOME=/h\n"),
        format!("{run} TELEGRAM_STATE_DIR=/a\nb HOME=/h\n"),
    ] {
        assert!(environment_of(text.as_bytes()).is_err(), "{text:?}");
    }
    assert_eq!(
        environment_args("17"),
        ["eww", "-o", "command=", "-p", "17"]
    );
}
