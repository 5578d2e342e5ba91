//! A child changes its rung, and it is written down: the way from what a turn
//! has seen or done to the one table of the ladder.
//!
//! This file does not know what follows from what, nor who is told.

use crate::ladder::{self, Event, Step};
use crate::model::{Level, SessionId};
use crate::watch::Watch;
use crate::world::World;

/// Something happens to a child: moves it, and writes a change down. `None`: it
/// does not concern it where it stands.
pub fn happens<W: World>(
    watch: &mut Watch,
    world: &mut W,
    id: &SessionId,
    event: Event,
) -> Option<Step> {
    let child = watch.state.known_child_mut(id)?;
    let from = child.rung;
    let step = ladder::happens(child, event)?;
    let subject = format!("{} {id}", child.title);
    let sentence = format!("{} -> {} ({})", from.word(), step.to.word(), step.row);
    if from == step.to && matches!(event, Event::Listed(_)) {
        return Some(step);
    }
    // Who has no episode comes and goes all day.
    if child.opened.is_some() && from != step.to {
        world.note(Level::Info, &subject, &sentence);
    } else {
        world.detail(&subject, &sentence);
    }
    Some(step)
}
