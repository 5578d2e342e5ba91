//! Telegram pollers: each owner of a bot, the folder that its poller should
//! have, and whether one runs now.
//!
//! One look is no proof: a poller may just be starting. This file does not know
//! when the watchdog acts on it.

use std::path::PathBuf;

use super::case::Case;
use super::shell::{numbers, quoted};
use super::tmux::installer;
use crate::capabilities::poller::{self, Seen};
use crate::commands::paper::{Light, add};
use crate::deck::processes::{pane_pids, pane_process};
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
    const NAME: &str = "pollers";
    let found = case.found;
    let owners = owners(case);
    if owners.is_empty() {
        let sentence = format_args!("on; no living session owns a Telegram bot");
        return found.ok(NAME, sentence);
    }
    let pollers = match case.desk.machine.pollers() {
        Ok(pollers) => pollers,
        Err(why) => {
            let mend = match why.contains("no ps") {
                true => format_args!("{} procps", installer()),
                false => format_args!("ps -e -o pid,args | head"),
            };
            let sentence = format_args!("impossible: who polls Telegram cannot be seen: {why}");
            return found.problem(NAME, sentence, mend);
        }
    };
    let count = owners.len();
    found.ok(
        NAME,
        format_args!("on; {count} sessions own a Telegram bot"),
    );
    for owner in &owners {
        one(case, &owners, owner, &pollers);
    }
}

fn owners(case: &mut Case) -> Vec<Owner> {
    let mut owners = Vec::new();
    for row in case.desk.chosen(&|_| true) {
        let agent = pane_process(case.table(), &row.id).cloned();
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

fn one(case: &mut Case, owners: &[Owner], owner: &Owner, pollers: &Pollers) {
    const NAME: &str = "poller";
    let (found, row, agent) = (case.found, &owner.row, owner.agent.as_ref());
    let name = &row.title;
    let deck = case.deck();
    let restart = format!(
        "{deck} -p {} session restart {}",
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
            return found.warning(
                NAME,
                format_args!("{name}: its folder is unknown, so it is not looked after: {why}"),
                format_args!("{restart}"),
            );
        }
    };
    let shown = folder.display();
    for other in owners {
        if other.row.id != row.id && share(owner, other) {
            return found.warning(
                NAME,
                format_args!(
                    "{name} and {} use the same Telegram bot ({shown}): only one of them hears \
                     it, and neither is restarted for it",
                    other.row.title
                ),
                format_args!("ls -l {}", quoted(&folder.join(".env"))),
            );
        }
    }
    let panes = pane_pids(case.table(), &row.id);
    let seen = poller::seen(pollers, &owner.telegram, folder, &panes);
    let young = poller::is_young(row, agent, &traces, case.desk.now);
    let state = judge(&seen, young, pollers.network);
    let mut sentence = format!("{name}: {}, folder {shown}", words(state, &seen));
    let (light, mend) = match state {
        State::Hears if !folder.is_dir() => {
            sentence.push_str(", which is not there");
            let mend = format!("mkdir -p -m 700 {}", quoted(folder));
            (Light::Yellow, mend)
        }
        State::Hears | State::Starting => (Light::Green, String::new()),
        State::None => {
            let advice = case.desk.machine.poller_advice(row, agent);
            let mend = mend(&advice, owner, &restart);
            add(&mut sentence, format_args!(". {advice}"));
            (Light::Red, mend)
        }
        State::Orphans => (Light::Red, format!("kill {}", numbers(&seen.orphans, " "))),
        State::Several => (Light::Red, format!("kill {}", numbers(&seen.own[1..], " "))),
        State::Unconnected => (Light::Yellow, restart),
    };
    found.say(
        NAME,
        light,
        format_args!("{sentence}"),
        format_args!("{mend}"),
    );
}

/// Whether two use the same bot.
fn share(one: &Owner, other: &Owner) -> bool {
    let token = one.telegram.token.is_some() && one.telegram.token == other.telegram.token;
    token || (one.folder.is_ok() && one.folder == other.folder)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hears,
    Starting,
    None,
    Orphans,
    Several,
    Unconnected,
}

fn judge(seen: &Seen, young: bool, network: bool) -> State {
    match (seen.own.len(), seen.orphans.len()) {
        (_, 1..) => State::Orphans,
        (0, 0) if young => State::Starting,
        (0, 0) => State::None,
        (2.., 0) => State::Several,
        (1, 0) if network && !seen.connected => State::Unconnected,
        (1, 0) => State::Hears,
    }
}

fn words(state: State, seen: &Seen) -> String {
    let own = numbers(&seen.own, ", ");
    match state {
        State::Hears => format!("process {own} polls"),
        State::Starting => "began less than a minute ago, its poller may be starting".to_owned(),
        State::None => "deaf: no process polls Telegram for it".to_owned(),
        State::Orphans => format!(
            "process {} polls its bot, is not below its agent and steals its messages",
            numbers(&seen.orphans, ", ")
        ),
        State::Several => format!("processes {own} poll at once and steal each other's messages"),
        State::Unconnected => format!("process {own} polls, but has no connection at this moment"),
    }
}

/// What brings a poller back: its plugin, when that is off; bun, when there is
/// none; else a restart.
fn mend(advice: &str, owner: &Owner, restart: &str) -> String {
    if !advice.contains("enabledPlugins") {
        return match advice.contains("no bun") {
            true => "command -v bun".to_owned(),
            false => restart.to_owned(),
        };
    }
    let plugin = owner.row.telegram.as_deref().unwrap_or(OFFICIAL);
    let plugin = quoted(plugin.strip_prefix("plugin:").unwrap_or(plugin));
    let config = owner.agent.as_ref().and_then(|a| a.config_dir.as_ref());
    let config = config.map_or(String::new(), |dir| {
        format!("CLAUDE_CONFIG_DIR={} ", quoted(dir))
    });
    format!("{config}claude plugin enable {plugin} && {restart}")
}

const OFFICIAL: &str = "telegram@claude-plugins-official";

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
            (seen(&[1], &[], true), false, true, State::Hears),
            (seen(&[1], &[], false), false, false, State::Hears),
            (seen(&[1], &[], false), false, true, State::Unconnected),
            (seen(&[], &[], false), true, true, State::Starting),
            (seen(&[], &[], false), false, true, State::None),
            (seen(&[1, 2], &[], true), false, true, State::Several),
            (seen(&[1], &[2], true), false, true, State::Orphans),
            (seen(&[], &[2], false), true, true, State::Orphans),
        ] {
            assert_eq!(judge(&seen, young, network), found, "{seen:?}");
            let words = words(found, &seen);
            let named = seen
                .own
                .iter()
                .chain(&seen.orphans)
                .all(|pid| words.contains(&pid.to_string()) || found == State::Orphans);
            assert!(named, "{words}");
        }
    }
}
