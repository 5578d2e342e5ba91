//! Writes the state down when it changed, and says when that cannot be done.
//!
//! This file does not know what is in the state, nor how it is written.

use crate::model::Level;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::World;

/// Saves the state when it changed, or was never saved. Says once that it
/// cannot, and once that it can again. True when what is remembered is written.
pub fn save<W: World>(watch: &mut Watch, world: &mut W, durable: bool) -> bool {
    if watch.rules.dry_run || (watch.remembered && watch.state == watch.saved) {
        return true;
    }
    match world.save(&watch.state, durable) {
        Ok(()) => {
            watch.saved = watch.state.clone();
            watch.remembered = true;
            if telling::is_open(&watch.state, Kind::Unsaved, "state") {
                world.note(Level::Info, "state.json", "is written again");
                let now = world.now();
                let text = "the state is written again";
                telling::resolve(&mut watch.state, Kind::Unsaved, "state", text, now);
            }
            true
        }
        Err(why) => {
            if !telling::is_open(&watch.state, Kind::Unsaved, "state") {
                let sentence = if watch.remembered {
                    format!("cannot be written, limits are kept in memory: {why}")
                } else {
                    format!("cannot be written, so nothing is done: {why}")
                };
                world.note(Level::Critical, "state.json", &sentence);
                let text = format!("state.json {sentence}");
                let now = world.now();
                let level = Level::Critical;
                telling::keep(&mut watch.state, Kind::Unsaved, "state", level, &text, now);
            }
            false
        }
    }
}
