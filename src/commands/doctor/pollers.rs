//! Telegram pollers: each owner of a bot, the folder that its poller should
//! have, and whether one runs now.
//!
//! One look is no proof: a poller may just be starting. This file does not know
//! when the watchdog acts on it.

use std::path::PathBuf;

use super::{Case, quoted, tmux};
use crate::capabilities::poller::{self, Seen};
use crate::deck::processes::{pane_pids, pane_process};
use crate::host::logs::escape;
use crate::model::{Pollers, Process, Session, Telegram};
use crate::world::World;

/// An owner of a bot.
struct Owner {
    row: Session,
    agent: Option<Process>,
    telegram: Telegram,
    folder: Result<PathBuf, String>,
}

/// All of it.
pub fn checks(case: &mut Case) {
    let owners = owners(case);
    if owners.is_empty() {
        return case.ok("pollers", "on; no living session owns a Telegram bot");
    }
    let pollers = match case.desk.machine.pollers() {
        Ok(pollers) => pollers,
        Err(why) => {
            let mend = match why.contains("no ps") {
                true => tmux::installed_by("procps"),
                false => "ps -e -o pid,args | head".to_owned(),
            };
            let sentence = format!("impossible: who polls Telegram cannot be seen: {why}");
            return case.problem("pollers", sentence, mend);
        }
    };
    case.ok(
        "pollers",
        format!("on; {} sessions own a Telegram bot", owners.len()),
    );
    for at in 0..owners.len() {
        one(case, &owners, at, &pollers);
    }
}

fn owners(case: &mut Case) -> Vec<Owner> {
    let rows: Vec<Session> = case.desk.watch.all_rows().cloned().collect();
    let mut owners = Vec::new();
    for row in rows {
        let agent = pane_process(&case.table, &row.id).cloned();
        if !poller::may_own(&row, agent.as_ref()) {
            continue;
        }
        let telegram = case.desk.machine.telegram(&row, agent.as_ref());
        if poller::owns(&row, &telegram) {
            owners.push(Owner {
                folder: poller::expected(&telegram),
                row,
                agent,
                telegram,
            });
        }
    }
    owners
}

fn one(case: &mut Case, owners: &[Owner], at: usize, pollers: &Pollers) {
    let owner = &owners[at];
    let (row, name) = (&owner.row, escape(&owner.row.title));
    let restart = format!(
        "{} -p {} session restart {}",
        case.deck(),
        quoted(row.profile.as_str()),
        row.id
    );
    let traces = case.desk.machine.traces(&row.profile, &row.id);
    let folder = match &owner.folder {
        Ok(_) if traces.sandboxed => Err("it runs in a sandbox, which is not looked into"),
        Ok(folder) => Ok(folder),
        Err(why) => Err(why.as_str()),
    };
    let folder = match folder {
        Ok(folder) => folder,
        Err(why) => {
            let sentence =
                format!("{name}: its folder is unknown, so it is not looked after: {why}");
            return case.warning("poller", sentence, restart);
        }
    };
    let shown = folder.display();
    let rival = |other: &&Owner| {
        let token = owner.telegram.token.is_some() && owner.telegram.token == other.telegram.token;
        other.row.id != row.id && (token || other.folder.as_ref() == Ok(folder))
    };
    if let Some(other) = owners.iter().find(rival) {
        let sentence = format!(
            "{name} and {} use the same Telegram bot ({shown}): only one of them hears it, and \
             neither is restarted for it",
            escape(&other.row.title)
        );
        let mend = format!("ls -l {}", quoted(folder.join(".env")));
        return case.warning("poller", sentence, mend);
    }
    let panes = pane_pids(&case.table, &row.id);
    let seen = poller::seen(pollers, &owner.telegram, folder, &panes);
    let now = case.desk.now;
    let young = poller::is_young(row, owner.agent.as_ref(), &traces, now);
    let found = judge(&seen, young, pollers.network);
    let sentence = format!("{name}: {}, folder {shown}", words(&found, &seen));
    match found {
        Found::Hears if !folder.is_dir() => {
            let mend = format!("mkdir -p -m 700 {}", quoted(folder));
            case.warning("poller", format!("{sentence}, which is not there"), mend);
        }
        Found::Hears | Found::Starting => case.ok("poller", sentence),
        Found::None => {
            let advice = case.desk.machine.poller_advice(row, owner.agent.as_ref());
            let mend = mend(&advice, owner, &restart);
            case.problem("poller", format!("{sentence}. {advice}"), mend);
        }
        Found::Orphans | Found::Several => {
            let others = match seen.orphans[..] {
                [] => &seen.own[1..],
                [..] => &seen.orphans,
            };
            case.problem("poller", sentence, format!("kill {}", numbers(others, " ")));
        }
        Found::Unconnected => case.warning("poller", sentence, restart),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Hears,
    Starting,
    None,
    Orphans,
    Several,
    Unconnected,
}

fn judge(seen: &Seen, young: bool, network: bool) -> Found {
    match (seen.own.len(), seen.orphans.len()) {
        (_, 1..) => Found::Orphans,
        (0, 0) if young => Found::Starting,
        (0, 0) => Found::None,
        (2.., 0) => Found::Several,
        (1, 0) if network && !seen.connected => Found::Unconnected,
        (1, 0) => Found::Hears,
    }
}

fn words(found: &Found, seen: &Seen) -> String {
    let own = numbers(&seen.own, ", ");
    match found {
        Found::Hears => format!("process {own} polls"),
        Found::Starting => "began less than a minute ago, its poller may be starting".to_owned(),
        Found::None => "deaf: no process polls Telegram for it".to_owned(),
        Found::Orphans => format!(
            "process {} polls its bot, is not below its agent and steals its messages",
            numbers(&seen.orphans, ", ")
        ),
        Found::Several => format!("processes {own} poll at once and steal each other's messages"),
        Found::Unconnected => format!("process {own} polls, but has no connection at this moment"),
    }
}

/// What brings a poller back: its plugin, when that is off; bun, when there is
/// none; else a restart.
fn mend(advice: &str, owner: &Owner, restart: &str) -> String {
    if advice.contains("enabledPlugins") {
        let plugin = owner.row.telegram.as_deref().unwrap_or(OFFICIAL);
        let plugin = quoted(plugin.strip_prefix("plugin:").unwrap_or(plugin));
        let config = owner
            .agent
            .as_ref()
            .and_then(|agent| agent.config_dir.clone());
        let config = config.map_or(String::new(), |dir| {
            format!("CLAUDE_CONFIG_DIR={} ", quoted(dir))
        });
        return format!("{config}claude plugin enable {plugin} && {restart}");
    }
    if advice.contains("no bun") {
        return "command -v bun".to_owned();
    }
    restart.to_owned()
}

const OFFICIAL: &str = "telegram@claude-plugins-official";

fn numbers(pids: &[u32], between: &str) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    pids.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_at_the_pollers_is_judged() {
        let seen = |own: &[u32], orphans: &[u32], connected| Seen {
            own: own.to_vec(),
            orphans: orphans.to_vec(),
            connected,
        };
        for (seen, young, network, found) in [
            (seen(&[1], &[], true), false, true, Found::Hears),
            (seen(&[1], &[], false), false, false, Found::Hears),
            (seen(&[1], &[], false), false, true, Found::Unconnected),
            (seen(&[], &[], false), true, true, Found::Starting),
            (seen(&[], &[], false), false, true, Found::None),
            (seen(&[1, 2], &[], true), false, true, Found::Several),
            (seen(&[1], &[2], true), false, true, Found::Orphans),
            (seen(&[], &[2], false), true, true, Found::Orphans),
        ] {
            assert_eq!(judge(&seen, young, network), found, "{seen:?}");
            let words = words(&found, &seen);
            let named = seen
                .own
                .iter()
                .chain(&seen.orphans)
                .all(|pid| words.contains(&pid.to_string()) || found == Found::Orphans);
            assert!(named, "{words}");
        }
    }
}
