//! A session that reads dead is left alone: written down once while the reason
//! stays the same, and looked at again when it may have lifted.
//!
//! This file does not know the rules that refuse.

use std::time::Duration;

use crate::capabilities::restart::{Cause, Refusal};
use crate::clock::Time;
use crate::model::{Level, Session, Status};
use crate::state::Refused;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::World;
use crate::{guard, report};

/// A mismatch is only written down after this: an ending agent may linger
/// (DESIGN 3.2).
const LINGER: Duration = Duration::from_secs(10);

/// The guard refuses: written down once, looked at again when it lifts.
pub fn by_guard<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    verdict: &guard::Verdict,
) {
    let now = world.now();
    // The rule that lifts last is the one that holds it back.
    let last = verdict
        .refusals()
        .max_by_key(|a| a.lifts.unwrap_or(Time(u64::MAX)));
    let (rule, wanted) = last.map_or(("", false), |a| (a.rule.word(), a.rule.is_wanted()));
    let after_own = watch
        .state
        .sessions
        .get(&row.id)
        .is_some_and(|m| m.attempt.as_ref().is_some_and(|a| a.outcome.is_none()));
    // The cool-down while an outcome is waited for is no news.
    if !after_own {
        refuse(
            watch,
            world,
            row,
            rule,
            &verdict.sentence(),
            !wanted,
            Some(verdict),
        );
    }
    watch.plan_next(&row.id, None, verdict.lifts(), now);
}

/// The look says to leave it alone.
pub fn left_alone<W: World>(watch: &mut Watch, world: &mut W, row: &Session, refusal: &Refusal) {
    let now = world.now();
    let hinted = watch.planned(&row.id).is_some_and(|p| p.hinted);
    let cause = refusal.cause;
    if hinted && row.status != Status::Error {
        match cause {
            Cause::Stopped | Cause::Archived | Cause::NeverRan | Cause::AuthHold => {
                watch.unplan(&row.id);
            }
            Cause::NotDead
            | Cause::Young
            | Cause::MaybeAlive
            | Cause::TerminalStands
            | Cause::SpawnLock
            | Cause::OtherCommand
            | Cause::WrongEyes
            | Cause::NoAnswer => watch.plan_next(&row.id, Some(cause), refusal.again, now),
        }
        return;
    }
    refuse(
        watch,
        world,
        row,
        cause.word(),
        &refusal.sentence,
        cause.is_told(),
        None,
    );
    if cause == Cause::AuthHold {
        let text = format!("{} ({}): {}", row.title, row.id, refusal.sentence);
        telling::keep(
            &mut watch.state,
            Kind::Auth,
            row.id.as_str(),
            Level::Critical,
            &text,
            now,
        );
    }
    watch.plan_next(&row.id, Some(cause), refusal.again, now);
}

/// Writes a refusal down, once while it stays the same.
fn refuse<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    rule: &str,
    sentence: &str,
    tell: bool,
    verdict: Option<&guard::Verdict>,
) {
    let now = world.now();
    let memory = watch.state.memory(&row.profile, &row.id, &row.title);
    let refusal = match memory.refusal.take().filter(|r| r.rule == rule) {
        Some(known) => Refused {
            sentence: sentence.to_owned(),
            ..known
        },
        None => Refused {
            rule: rule.to_owned(),
            sentence: sentence.to_owned(),
            since: now,
            written: false,
            tell,
        },
    };
    let lingers = rule == Cause::MaybeAlive.word() && now.since(refusal.since) < LINGER;
    let write = !refusal.written && !lingers;
    memory.refusal = Some(Refused {
        written: refusal.written || write,
        ..refusal
    });
    if write {
        report::refusal(world, row, rule, sentence, verdict);
    }
}
