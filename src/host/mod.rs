//! Hands: the waiting, the programs that are run, the files that are ours.
//!
//! Nothing in this room knows what agent-deck's answers mean, nor what is
//! decided; it knows the operating system, and how it fails.
//!
//! | file | what |
//! | --- | --- |
//! | `wait.rs` | one poll over signals, folders, processes and a timeout |
//! | `folder_watch.rs` | inotify (Linux) |
//! | `process_watch.rs` | pidfds (Linux) |
//! | `no_watch.rs` | both, on systems that have neither |
//! | `dumps.rs` | no core file after a panic |
//! | `exec.rs` | a program with a deadline and bounded output |
//! | `nameless.rs` | files that only a program and we can find |
//! | `folder.rs` | our folder, whole files, careful opening |
//! | `lock.rs` | who runs |
//! | `flags.rs` | what the user put down as files |
//! | `logs.rs` | three logs |
//! | `notify.rs` | the service manager |
//! | `trust.rs` | whether a program could be changed by others |
//! | `users.rs` | the user database |
//! | `whole.rs` | files of the system |

pub mod dumps;
pub mod exec;
pub mod flags;
pub mod folder;
mod hints;
pub mod lock;
pub mod logs;
mod nameless;
pub mod notify;
pub mod trust;
pub mod users;
pub mod wait;
pub mod whole;

#[cfg(target_os = "linux")]
mod folder_watch;
#[cfg(not(target_os = "linux"))]
mod no_watch;
#[cfg(target_os = "linux")]
mod process_watch;
