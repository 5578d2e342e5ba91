//! The nouns: what agent-deck says, what the machine shows. Plain data.
//!
//! This room does not know where any of it comes from, nor what follows from it.

mod by_id;
mod ids;
mod process;
mod screen;
mod session;
mod telegram;
mod user;

pub use by_id::ById;
pub use ids::{Profile, SessionId};
pub use process::{AgentSays, Process, ProcessMark, Scope, Sight};
pub use screen::{Screen, Silence};
pub use session::{
    Completion, Delivery, Digest, HookRecord, NoAnswer, Pane, Restarted, Session, Shown,
    SpawnFailure, Status, Stopped, Substate, Traces,
};
pub use telegram::{Declared, Poller, Pollers, Telegram};
pub use user::{Flags, Level, NoticeScope, Pause};
