//! The looks that permit typing into a session, a child or a parent.
//!
//! The last one is the one that counts: a fresh pane, at most [`LOOK_AGE`]
//! before the message begins, with the very screen that was seen before and a
//! free composer (DESIGN 3.4). This file does not know what is typed, nor how a
//! screen is read.

use std::time::Duration;

use crate::capabilities::patrol;
use crate::deck::processes::{bare_shell, pane_process};
use crate::model::{AgentSays, Pane, Process, Scope, Session, Sight, Status};
use crate::watch::Watch;
use crate::world::World;

/// The message begins at most this long after the look that permits it (DESIGN 3.4).
pub const LOOK_AGE: Duration = Duration::from_millis(250);

/// Why nothing is typed after all.
pub enum Doubt {
    /// Somebody has to hear it.
    Told(String),
    /// Looked at again soon; somebody has to hear it when it lasts.
    Later(String),
}

/// What agent-deck, the machine and the agent itself say of it at this moment;
/// its status has to be one of those.
///
/// # Errors
/// What speaks against typing.
pub fn second_look<W: World>(
    watch: &Watch,
    world: &mut W,
    row: &Session,
    statuses: &[Status],
) -> Result<(), Doubt> {
    let told = |why: &str| Err(Doubt::Told(why.to_owned()));
    match world.show(&row.profile, &row.id) {
        Ok(shown) if shown.auth_hold => return told("agent-deck holds it for a login problem"),
        Ok(shown) if statuses.contains(&shown.status) => {}
        Ok(shown) => {
            let why = format!("session show says {}", shown.status.word());
            return Err(Doubt::Later(why));
        }
        Err(why) => return Err(Doubt::Later(format!("session show: {why}"))),
    }
    let Sight::Seen(table) = world.processes(Scope::All) else {
        return Ok(());
    };
    let own: Vec<u32> = watch.state.running_pids().collect();
    let now = world.now();
    if patrol::disturbed(row, &table, &own, now) {
        return Err(Doubt::Later(
            "another agent-deck changes sessions".to_owned(),
        ));
    }
    if bare_shell(&table, &row.id).is_some() {
        return told("its terminal holds a bare shell");
    }
    let Some(agent) = pane_process(&table, &row.id) else {
        return Ok(());
    };
    veto(world.agent_says(agent), agent)
}

/// What an agent says of itself never permits, but it forbids.
fn veto(says: Option<AgentSays>, agent: &Process) -> Result<(), Doubt> {
    if agent.suspended {
        return Err(Doubt::Told("its agent is suspended".to_owned()));
    }
    match says {
        None | Some(AgentSays::Idle) => Ok(()),
        Some(says) => {
            let why = format!(
                "its agent says of itself that it is not idle: {}",
                says.word()
            );
            Err(Doubt::Told(why))
        }
    }
}

/// The look that permits typing: it and the way to the message take no longer
/// than [`LOOK_AGE`] together.
///
/// # Errors
/// What stands in the way.
pub fn still_free<W: World>(
    world: &mut W,
    row: &Session,
    digest: &str,
) -> Result<(), &'static str> {
    let asked = world.now();
    let Ok(Pane::Stands(screen)) = world.pane(&row.profile, &row.id) else {
        return Err("its pane cannot be read");
    };
    if screen.decision || patrol::digest(&screen) != digest {
        return Err("its screen changes");
    }
    if let Some(why) = patrol::silence(row, &screen) {
        return Err(why);
    }
    if world.now().since(asked) > LOOK_AGE {
        return Err("a look at its pane takes longer than 250 ms here");
    }
    if world.leaving() || world.end_waits() {
        return Err("something else is more urgent");
    }
    Ok(())
}
