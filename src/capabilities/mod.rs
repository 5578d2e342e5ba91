//! What the watchdog can do, one file a capability. Pure: what was seen goes
//! in, a judgement comes out.
pub mod cause;
pub mod eyes;
pub mod look;
pub mod patrol;
pub mod poller;
pub mod restart;
