//! What is told because it lasts: a critical session that reads dead and is not
//! restarted, a pause that was forgotten.
//!
//! This file does not know how it came to be so.

use std::time::Duration;

use crate::capabilities::cause::Cause;
use crate::clock::{Time, spoken};
use crate::model::Level;
use crate::outcome;
use crate::telling::{self, Kind};
use crate::watch::Watch;

/// A critical session that reads dead and is refused this long is told
/// (DESIGN 1.1).
const REFUSED_TOLD: Duration = Duration::from_secs(600);
/// A pause file older than this is mentioned (DESIGN 2.3).
const PAUSE_FORGOTTEN: Duration = Duration::from_secs(86_400);

/// Tells what has lasted long enough.
pub fn book(watch: &mut Watch, now: Time) {
    outcome::end_backoffs(&mut watch.state, now);
    let mut told = Vec::new();
    for (id, memory) in watch.state.sessions.iter() {
        let listed = memory.missing_since.is_none() && watch.state.is_listed(&memory.profile);
        let dead = memory
            .dead_since
            .filter(|at| listed && now.since(*at) >= REFUSED_TOLD);
        let Some(dead) = dead else { continue };
        let Some(refusal) = memory.refusal.as_ref().filter(|r| r.tell) else {
            continue;
        };
        let open = [Kind::Down, Kind::Auth, Kind::Mismatch]
            .iter()
            .any(|kind| telling::is_open(&watch.state, *kind, id.as_str()))
            || telling::is_open(&watch.state, Kind::Eyes, memory.profile.as_str());
        if !open {
            let kind = if refusal.rule == Cause::MaybeAlive.word() {
                Kind::Mismatch
            } else {
                Kind::Down
            };
            let text = format!(
                "{} ({id}) reads dead for {} and is not restarted: {}",
                memory.title,
                spoken(now.since(dead)),
                refusal.sentence
            );
            told.push((kind, id.clone(), text));
        }
    }
    for (kind, id, text) in told {
        telling::keep(
            &mut watch.state,
            kind,
            id.as_str(),
            Level::Critical,
            &text,
            now,
        );
    }
    let pause = watch
        .flags
        .pause
        .filter(|p| now.since(p.since) >= PAUSE_FORGOTTEN);
    match pause {
        Some(pause) => {
            let age = spoken(now.since(pause.since));
            let text = format!("the watchdog is paused for {age}: it watches and acts on nothing");
            telling::keep(
                &mut watch.state,
                Kind::Pause,
                "all",
                Level::Warning,
                &text,
                now,
            );
        }
        None => telling::resolve(
            &mut watch.state,
            Kind::Pause,
            "all",
            "the pause is over",
            now,
        ),
    }
}
