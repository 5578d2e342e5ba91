//! Is the agent of a session alive, and what is in its terminal (DESIGN 3.2)?
//! Pure questions to a table.
//!
//! When in doubt it is alive. This file does not know what agent-deck says of
//! the session.

use super::{
    base_name, gives_text, is_agent_deck, is_shell, is_tmux_server, program_at, server_of,
};
use crate::model::{Process, SessionId};

/// The process that tmux started in the session's terminal, which is the agent
/// itself as a rule (contract 6.7). Among several one that is no shell, then
/// the oldest: panes that a user splits off carry the id as well.
pub fn pane_process<'a>(table: &'a [Process], id: &SessionId) -> Option<&'a Process> {
    pane_processes(table, id).min_by_key(|p| (is_shell(&p.name), p.started))
}

/// All processes in the session's terminals.
pub fn pane_pids(table: &[Process], id: &SessionId) -> Vec<u32> {
    pane_processes(table, id)
        .map(|process| process.pid)
        .collect()
}

fn pane_processes<'a>(table: &'a [Process], id: &SessionId) -> impl Iterator<Item = &'a Process> {
    let id = id.clone();
    table
        .iter()
        .filter(move |p| carries(p, &id) && server_of(table, p).is_some())
}

/// Carries the session's id, and is neither over nor a tmux server: one that
/// was started from inside a session inherits the id for ever.
fn carries(process: &Process, id: &SessionId) -> bool {
    !process.zombie && !is_tmux_server(process) && process.instance.as_deref() == Some(id.as_str())
}

/// A process that may be the agent of this session: its number, and why.
///
/// `agent_session` is the agent's own session id; empty fits nothing.
pub fn maybe_alive(
    table: &[Process],
    id: &SessionId,
    agent_session: &str,
) -> Option<(u32, String)> {
    alive_but(table, id, agent_session, &[])
}

/// The same, where the bare shell in its terminal is known and does not count.
pub fn alive_beside_shell(
    table: &[Process],
    id: &SessionId,
    agent_session: &str,
) -> Option<(u32, String)> {
    alive_but(table, id, agent_session, &bare_shells(table, id))
}

fn alive_but(
    table: &[Process],
    id: &SessionId,
    agent_session: &str,
    but: &[u32],
) -> Option<(u32, String)> {
    table
        .iter()
        .filter(|p| !but.contains(&p.pid))
        .find_map(|p| {
            let why = if carries(p, id) {
                carrier(table, p)?
            } else if runs_session(p, agent_session) {
                "runs this agent session"
            } else {
                return None;
            };
            Some((p.pid, format!("process {} ({}) {why}", p.pid, p.name)))
        })
}

/// What a process that carries the id is to it; `None` when it is no sign of life.
fn carrier(table: &[Process], process: &Process) -> Option<&'static str> {
    if server_of(table, process).is_some() {
        Some("is in its terminal")
    } else if process.inside_agent || is_agent_deck(process) {
        // A tool or server that a dead agent left, or a command that ends soon.
        None
    } else {
        Some("carries its id")
    }
}

/// An agent at work on this agent session, by its arguments: `--resume X`,
/// `--session-id X` or with `=`. The text of a script does not count.
fn runs_session(process: &Process, agent_session: &str) -> bool {
    if agent_session.is_empty() || process.zombie || !names(&process.args, agent_session) {
        return false;
    }
    let program = program_at(&process.args).map(|at| base_name(&process.args[at]));
    program.is_some_and(|program| program != "tmux") && !is_agent_deck(process)
}

fn names(args: &[String], agent_session: &str) -> bool {
    let flag = |arg: &str| matches!(arg, "--session-id" | "--resume");
    let joined = |arg: &String| {
        arg.split_once('=')
            .is_some_and(|(name, value)| flag(name) && value == agent_session)
    };
    let apart = |pair: &[String]| flag(&pair[0]) && pair[1] == agent_session;
    args.iter().any(joined) || args.windows(2).any(apart)
}

/// The shell that is all there is of this session: everything that tmux started
/// in its terminals is a shell without a command and without children, and
/// nothing else carries the id.
pub fn bare_shell(table: &[Process], id: &SessionId) -> Option<u32> {
    let shells = bare_shells(table, id);
    let first = shells.first().copied()?;
    alive_but(table, id, "", &shells).is_none().then_some(first)
}

/// All its pane processes, when they are bare shells; else none.
fn bare_shells(table: &[Process], id: &SessionId) -> Vec<u32> {
    let panes: Vec<&Process> = pane_processes(table, id).collect();
    let bare = panes
        .iter()
        .all(|p| is_idle_shell(p) && !has_children(table, p.pid));
    if bare {
        panes.iter().map(|p| p.pid).collect()
    } else {
        Vec::new()
    }
}

/// Where arguments are not known the name decides. A script goes by the name of
/// its file, and `exec "$SHELL" -i` leaves nothing but flags (contract 6.2).
fn is_idle_shell(process: &Process) -> bool {
    let mut args = process.args.iter();
    let named = args.next().is_none_or(|program| is_shell(program));
    named
        && is_shell(&process.name)
        && args.all(|arg| arg.starts_with('-') && !gives_text(arg, 'c'))
}

fn has_children(table: &[Process], pid: u32) -> bool {
    table.iter().any(|p| p.parent == pid && !p.zombie)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1a2b3c4d-1755900000";
    const AGENT: &str = "a276f58f-0c83-4a21-9396-aad657176aa7";
    const SERVER: u32 = 100;
    const PANE: u32 = 200;

    fn id() -> SessionId {
        SessionId::parse(ID).unwrap()
    }

    fn process(pid: u32, parent: u32, name: &str, command: &str) -> Process {
        let args = command.split_whitespace().map(str::to_owned).collect();
        let name = name.to_owned();
        Process {
            pid,
            parent,
            own: true,
            name,
            args,
            ..Process::default()
        }
    }

    fn with_id(mut process: Process) -> Process {
        process.instance = Some(ID.to_owned());
        process
    }

    fn server() -> Process {
        process(SERVER, 1, "tmux: server", "tmux new-session -d")
    }

    fn agent() -> Process {
        with_id(process(PANE, SERVER, "claude", "claude --session-id x"))
    }

    /// Whether the one process beside a tmux server is a sign of life.
    fn alone(process: Process, agent_session: &str) -> bool {
        maybe_alive(&[server(), process], &id(), agent_session).is_some()
    }

    #[test]
    fn the_pane_process_is_found_by_id_and_parent() {
        let other = Process {
            instance: Some(format!("{ID}0")),
            ..agent()
        };
        let deep = with_id(process(300, PANE, "bash", "bash"));
        let table = [
            deep.clone(),
            other,
            Process {
                pid: 201,
                ..agent()
            },
            server(),
        ];
        assert_eq!(pane_process(&table, &id()).map(|p| p.pid), Some(201));
        assert_eq!(server_of(&table, &table[2]).map(|p| p.pid), Some(SERVER));
        assert_eq!(server_of(&table, &deep), None);
        let zombie = Process {
            zombie: true,
            ..agent()
        };
        assert_eq!(pane_process(&[server(), zombie], &id()), None);
        assert_eq!(pane_process(&[agent()], &id()), None);
    }

    #[test]
    fn a_split_pane_does_not_hide_the_agent() {
        let split = with_id(process(150, SERVER, "bash", "-bash"));
        let table = [server(), split.clone(), agent()];
        assert_eq!(pane_process(&table, &id()).map(|p| p.pid), Some(PANE));
        assert_eq!(bare_shell(&table, &id()), None);
        assert_eq!(bare_shell(&[server(), split], &id()), Some(150));
    }

    #[test]
    fn who_carries_the_id_may_be_the_agent() {
        assert!(alone(agent(), ""));
        // Suspended, or under an unknown tmux name, or reparented: alive.
        assert!(alone(with_id(process(300, 1, "claude", "claude")), ""));
        // A tmux server inside an agent hands CLAUDECODE down to all its panes.
        assert!(alone(
            Process {
                inside_agent: true,
                ..agent()
            },
            ""
        ));
        // The wrapper of a one-shot task in the pane (its own name is agent-deck).
        assert!(alone(
            with_id(process(
                PANE,
                SERVER,
                "agent-deck",
                "agent-deck run-task -- x"
            )),
            ""
        ));
        let told = maybe_alive(&[server(), agent()], &id(), "").unwrap();
        assert_eq!(
            told,
            (PANE, "process 200 (claude) is in its terminal".to_owned())
        );
    }

    #[test]
    fn what_an_agent_leaves_behind_is_not_the_agent() {
        let orphan = |name: &str, command: &str| with_id(process(300, 1, name, command));
        for process in [
            Process {
                inside_agent: true,
                ..orphan("bash", "/bin/bash -c sleep")
            },
            Process {
                zombie: true,
                ..agent()
            },
            Process {
                name: "tmux: server".to_owned(),
                ..orphan("", "tmux -L other")
            },
            orphan("agent-deck", "agent-deck hook-handler"),
            orphan("agent-deck", "/bin/bash /usr/local/bin/agent-deck list"),
            orphan("agent-deck-watc", "agent-deck-watchdog status"),
            Process {
                instance: Some("other-1".to_owned()),
                ..agent()
            },
            Process {
                instance: None,
                ..agent()
            },
        ] {
            assert!(!alone(process.clone(), ""), "{process:?}");
        }
    }

    #[test]
    fn an_agent_is_known_by_its_own_session_id() {
        for command in [
            "claude --session-id A --dangerously-skip-permissions",
            "/home/u/.local/bin/claude --resume A",
            "claude --resume=A -p x",
            "claude --session-id=A",
            "node /opt/lib/claude --resume A",
            "node --max-old-space-size=9 /opt/lib/cli.js --resume A",
            "bun run claude --resume A",
            "/bin/bash /home/u/bin/claude --session-id A",
            "/bin/bash -e /home/u/bin/claude --session-id A",
            "claude-work --resume A",
            "docker exec -it box claude --resume A",
        ] {
            let process = process(300, 1, "x", &command.replace('A', AGENT));
            assert!(alone(process.clone(), AGENT), "{command}");
            assert!(!alone(process.clone(), ""), "{command}");
            assert!(
                !alone(
                    Process {
                        zombie: true,
                        ..process
                    },
                    AGENT
                ),
                "{command}"
            );
        }
    }

    #[test]
    fn texts_that_merely_contain_it_do_not_count() {
        for command in [
            "bash -c claude --resume A",
            "sh -lc claude --session-id A",
            "node -e x --resume A",
            "grep -r A /home/u",
            "tail -f /home/u/A.jsonl",
            "claude --resume A0",
            "claude --resume",
            "claude A",
            "agent-deck session restart --resume A",
            "/bin/sh /usr/local/bin/agent-deck --resume A",
            "tmux new-session claude --resume A",
            "vim --cmd=A",
            "",
        ] {
            let process = process(300, 1, "x", &command.replace('A', AGENT));
            assert!(!alone(process, AGENT), "{command}");
        }
        let script = Process {
            args: vec![
                "bash".into(),
                "-c".into(),
                format!("exec claude --resume {AGENT}"),
            ],
            ..process(300, 1, "bash", "")
        };
        assert!(!alone(script, AGENT));
    }

    #[test]
    fn a_bare_shell_is_a_shell_without_command_and_children() {
        for (name, command, bare) in [
            ("bash", "-bash", true),
            ("bash", "bash -i", true),
            ("zsh", "/usr/bin/zsh -i", true),
            ("fish", "fish --login", true),
            // Arguments not asked for.
            ("dash", "", true),
            ("claude", "/bin/bash /home/u/bin/claude", false),
            ("bash", "bash /home/u/wrapper.sh", false),
            ("bash", "bash -c claude", false),
            ("bash", "bash -lc x", false),
            ("bash", "sleep 5", false),
            ("claude", "claude", false),
            ("bashful", "bashful", false),
        ] {
            let table = [server(), with_id(process(PANE, SERVER, name, command))];
            assert_eq!(
                bare_shell(&table, &id()).is_some(),
                bare,
                "{name} {command}"
            );
            // Whatever it is, without more knowledge it may be the agent.
            assert!(maybe_alive(&table, &id(), "").is_some());
            assert_eq!(alive_beside_shell(&table, &id(), "").is_none(), bare);
        }
    }

    #[test]
    fn a_shell_with_company_is_not_bare() {
        let shell = || with_id(process(PANE, SERVER, "bash", "-bash"));
        let child = process(300, PANE, "claude", "claude");
        assert_eq!(bare_shell(&[server(), shell(), child.clone()], &id()), None);
        let zombie = Process {
            zombie: true,
            ..child
        };
        assert_eq!(bare_shell(&[server(), shell(), zombie], &id()), Some(PANE));
        // The agent lives elsewhere, with the id or by its arguments.
        let lost = with_id(process(300, 1, "claude", "claude"));
        assert_eq!(bare_shell(&[server(), shell(), lost], &id()), None);
        let resumed = process(300, 1, "claude", &format!("claude --resume {AGENT}"));
        let table = [server(), shell(), resumed];
        assert_eq!(bare_shell(&table, &id()), Some(PANE));
        assert_eq!(
            alive_beside_shell(&table, &id(), AGENT).map(|(pid, _)| pid),
            Some(300)
        );
        assert_eq!(bare_shell(&[server()], &id()), None);
    }
}
