//! A session that reads dead is left alone: each reason is written down
//! once until it lives again, and looked at again when it may have lifted.
//!
//! This file does not know the rules that refuse.

use crate::capabilities::cause::{Cause, Refusal};
use crate::clock::Time;
use crate::guard::{self, Purpose};
use crate::model::{Level, Session, Status};
use crate::report;
use crate::state::say;
use crate::telling::{self, Kind};
use crate::together::LINGER;
use crate::watch::Watch;
use crate::world::World;

/// The guard refuses: written down once, looked at again when it lifts.
pub fn by_guard<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    purpose: Purpose,
    verdict: &guard::Verdict,
) {
    if purpose == Purpose::Deaf {
        return deaf(watch, world, row, verdict);
    }
    let now = world.now();
    // The rule that lifts last is the one that holds it back.
    let last = verdict
        .refusals()
        .max_by_key(|a| a.lifts.unwrap_or(Time(u64::MAX)));
    let (rule, tell) = last.map_or(("", false), |a| (a.rule.word(), a.rule.is_told()));
    let own = watch
        .state
        .sessions
        .get(&row.id)
        .and_then(|m| m.attempt.as_ref());
    // The cool-down while an outcome is waited for is no news.
    if watch.rules.dry_run || own.is_none_or(|attempt| attempt.outcome.is_some()) {
        let sentence = verdict.sentence();
        let reason = Reason {
            rule,
            sentence: &sentence,
            tell,
            verdict: Some(verdict),
        };
        refuse(watch, world, row, &reason);
    }
    watch.plan_next(&row.id, None, verdict.lifts(), now);
}

/// The guard refuses to end an agent whose poller is gone: each rule is written
/// down once until a poller is seen again.
fn deaf<W: World>(watch: &mut Watch, world: &mut W, row: &Session, verdict: &guard::Verdict) {
    let sentence = verdict.sentence();
    let Some(first) = verdict.refusals().next() else {
        return;
    };
    let word = first.rule.word();
    let dry = watch.rules.dry_run;
    if say(&mut watch.state.owner(row).said, word) || dry {
        report::refusal(world, row, Purpose::Deaf, word, &sentence, Some(verdict));
    }
}

/// The look says to leave it alone.
pub fn left_alone<W: World>(watch: &mut Watch, world: &mut W, row: &Session, refusal: &Refusal) {
    let now = world.now();
    let hinted = watch.planned(&row.id).is_some_and(|p| p.hinted);
    let cause = refusal.cause;
    if matches!(cause, Cause::Stopped | Cause::BeingStopped) {
        let memory = watch.state.memory(&row.profile, &row.id, &row.title);
        memory.stopped_since.get_or_insert(now);
    }
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
            | Cause::BeingStopped
            | Cause::OtherCommand
            | Cause::DatabaseBusy
            | Cause::OtherWatchdog
            | Cause::WrongEyes
            | Cause::NoAnswer => watch.plan_next(&row.id, Some(cause), refusal.again, now),
        }
        return;
    }
    let (rule, tell) = (cause.word(), cause.is_told());
    let reason = Reason {
        rule,
        sentence: &refusal.sentence,
        tell,
        verdict: None,
    };
    refuse(watch, world, row, &reason);
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

/// Why a session is left alone, as it is written down.
struct Reason<'a> {
    rule: &'a str,
    sentence: &'a str,
    /// A person has to hear of it when it lasts.
    tell: bool,
    /// The guard's answers, where it was the guard.
    verdict: Option<&'a guard::Verdict>,
}

/// Notes a refusal, and writes it down if its rule is new.
fn refuse<W: World>(watch: &mut Watch, world: &mut W, row: &Session, reason: &Reason) {
    let now = world.now();
    let dry = watch.rules.dry_run;
    let memory = watch.state.memory(&row.profile, &row.id, &row.title);
    let since = memory.refuse(reason.rule, reason.sentence, reason.tell, now);
    let lingers = reason.rule == Cause::MaybeAlive.word() && now.since(since) < LINGER && !dry;
    if !lingers && memory.say(reason.rule) {
        report::refusal(
            world,
            row,
            Purpose::Dead,
            reason.rule,
            reason.sentence,
            reason.verdict,
        );
    }
}
