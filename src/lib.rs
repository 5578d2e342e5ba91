//! agent-deck-watchdog restarts critical agent-deck sessions that died, inside
//! guardrails that hold across crashes, reboots and cron runs.
//!
//! The house, from the door inwards; a room uses the rooms below it:
//!
//! - [`cli`], [`config`]: arguments and environment; [`daemon`]: wait, turn, wait
//! - [`turn`]: one turn on one page; [`act`]: the one place that acts;
//!   [`refusal`]: why nothing is done; [`report`]: lines; [`saving`]: state kept
//! - [`capabilities`]: is it dead? pure; [`remember`]: what a list changes;
//!   [`together`]: many at once; [`outcome`]: what a restart led to;
//!   [`telling`]: episodes and messages
//! - [`guard`]: every guardrail, the only maker of permits
//! - [`watch`], [`state`]: what is held between turns, and between runs
//! - [`world`]: what a turn needs from outside; [`machine`]: the real one
//! - [`deck`]: agent-deck's words and places; [`host`]: the hands
//! - [`model`], [`clock`], [`stored`]: nouns, stamps, records

pub mod act;
pub mod capabilities;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod deck;
pub mod guard;
pub mod host;
pub mod machine;
pub mod model;
pub mod outcome;
pub mod refusal;
pub mod remember;
pub mod report;
pub mod saving;
pub mod state;
pub mod stored;
pub mod telling;
pub mod together;
pub mod turn;
pub mod watch;
pub mod world;
