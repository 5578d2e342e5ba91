//! agent-deck's world: what to ask it, how to read what it answers, where it
//! keeps its files, and which of the machine's processes are its.
//!
//! This room decides nothing, starts no program and has no clock of its own:
//! the present comes in as an argument.

pub mod agent_file;
pub mod answers;
pub mod argv;
pub mod database;
pub mod hooks;
pub mod places;
pub mod processes;
pub mod screen;
pub mod telegram;
pub mod trouble;
