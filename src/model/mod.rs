//! The nouns: what agent-deck says, what the machine shows. Plain data.
//!
//! This room does not know where any of it comes from, nor what follows from it.

mod ids;
mod process;
mod session;
mod user;

pub use ids::{Profile, SessionId};
pub use process::{Process, ProcessMark, Scope, Sight};
pub use session::{
    Digest, HookRecord, NoAnswer, Pane, Restarted, Session, Shown, Status, Substate, Traces,
};
pub use user::{Flags, Level, Pause};
