//! agent-deck-watchdog restarts critical agent-deck sessions that died or went
//! deaf and asks children that wait unseen, inside guardrails that hold across
//! crashes, reboots and cron runs.
//!
//! The house, from the door inwards; a room uses only rooms that come after it:
//!
//! - [`commands`]: what the user asks; [`daemon`]: wait, turn, wait;
//!   [`machine`]: the real world
//! - [`cli`], [`config`]: arguments and environment
//! - [`turn`]: one turn on one page
//! - [`pollers`], [`patrol`], [`deaths`]: the second and the third capability in a
//!   turn, and children that died; [`children`]: what a list says of all children
//! - [`nudge`]: asking a child; [`triage`]: asking the user's program about it;
//!   [`stop`]: the last rung; [`batches`]: children of one parent that are over
//!   together; [`parents`]: telling a parent; [`typing`]: the looks that permit
//!   both; [`act`]: restarting a session; [`settle`]: what becomes of commands that
//!   were left behind
//! - [`refusal`]: who is left alone, and why; [`lasting`]: what is told because it
//!   lasts; [`saving`]: the memory is written
//! - [`rungs`]: a child climbs, and it is written down
//! - [`pace`]: how far apart turns are; [`report`]: lines of the logs; [`remember`]: what a list changes
//! - [`watch`]: what is held between turns; [`outcome`]: what a restart led to;
//!   [`together`]: what befalls many at once
//! - [`capabilities`]: is it dead? pure; [`telling`]: episodes and messages
//! - [`world`]: what a turn needs from outside
//! - [`ladder`]: what follows for a child that waits; pure
//! - [`guard`]: every guardrail, the only maker of permits; [`state`]: what is
//!   held between runs
//! - [`deck`]: agent-deck's words and places; [`host`]: the hands
//! - [`model`], [`clock`], [`stored`], [`json`]: nouns, stamps, records, objects

pub mod act;
pub mod batches;
pub mod capabilities;
pub mod children;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod daemon;
pub mod deaths;
pub mod deck;
pub mod guard;
pub mod host;
pub mod json;
pub mod ladder;
pub mod lasting;
pub mod machine;
pub mod model;
pub mod nudge;
pub mod outcome;
pub mod pace;
pub mod parents;
pub mod patrol;
pub mod pollers;
pub mod refusal;
pub mod remember;
pub mod report;
pub mod rungs;
pub mod saving;
#[cfg(test)]
mod scratch;
pub mod settle;
pub mod state;
pub mod stop;
pub mod stored;
pub mod telling;
pub mod together;
pub mod triage;
pub mod turn;
pub mod typing;
pub mod watch;
pub mod world;
