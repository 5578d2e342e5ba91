//! The state file of the simulated machine. What is saved is put into bytes only
//! when somebody reads it: most of it is overwritten before.
//!
//! This file does not know what is in the state.

use std::rc::Rc;

use agent_deck_watchdog::clock::{Reading, Time};
use agent_deck_watchdog::state::State;

/// A file's content.
#[derive(Clone)]
pub enum Written {
    /// Whatever these are.
    Bytes(Vec<u8>),
    /// A state, and the clocks at which it was saved.
    State(Rc<(State, Time, Reading)>),
}

impl Written {
    pub fn state(state: &State, now: Time, clocks: Reading) -> Written {
        Written::State(Rc::new((state.clone(), now, clocks)))
    }

    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Written::Bytes(bytes) => bytes.clone(),
            Written::State(saved) => saved.0.encode(saved.1, &saved.2),
        }
    }
}
