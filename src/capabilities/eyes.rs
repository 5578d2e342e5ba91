//! Whether what is seen from here can be believed: the right place, and
//! processes that are there to be seen (DESIGN 3.2).
//!
//! This file does not know single sessions.

use crate::clock::Time;
use crate::deck::processes::{alive_beside_shell, maybe_alive, pane_process};
use crate::model::{Profile, Session, Sight, Status};

/// Whether we look from another place than the sessions live in, or the tmux
/// socket was lost: agents live, and agent-deck sees none of them. Those that
/// started after it was asked, at `listed`, prove nothing.
pub fn wrong_place(rows: &[Session], listed: Time, sight: &Sight) -> Option<String> {
    let Sight::Seen(table) = sight else {
        return None;
    };
    if rows.iter().any(|row| row.status.is_alive() && !row.is_ssh) {
        return None;
    }
    let dead = rows.iter().filter(|row| row.status == Status::Error);
    let lived = |pid: u32| table.iter().any(|p| p.pid == pid && p.started <= listed);
    let living = dead
        .filter_map(|row| alive_beside_shell(table, &row.id, ""))
        .filter(|(pid, _)| lived(*pid))
        .count();
    (living > 0).then(|| {
        format!(
            "{living} sessions of this profile read dead while their agents live, and none reads \
             alive: perhaps they live under another user, HOME or TMUX_TMPDIR, or the tmux socket \
             was lost (SIGUSR1 makes the tmux server create it again)"
        )
    })
}

/// Whether processes can be believed: at least one of the sessions that are
/// listed alive was found among them. `None` when they can.
pub fn blind(profile: &Profile, rows: &[Session], sight: &Sight) -> Option<String> {
    let alive: Vec<&Session> = rows
        .iter()
        .filter(|row| row.status.is_alive() && !row.is_ssh)
        .collect();
    match sight {
        Sight::Blind(why) => Some(why.clone()),
        Sight::Seen(table) => {
            let seen = alive.iter().any(|row| {
                pane_process(table, &row.id).is_some() || maybe_alive(table, &row.id, "").is_some()
            });
            (!alive.is_empty() && !seen).then(|| {
                format!(
                    "{} sessions of {profile} are listed alive and no process of them is seen",
                    alive.len()
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Process, SessionId};

    fn row(id: &str, status: Status) -> Session {
        let profile = Profile::parse("default").unwrap();
        Session {
            tool: "claude".to_owned(),
            command: "claude".to_owned(),
            status,
            ..Session::new(profile, SessionId::parse(id).unwrap())
        }
    }

    /// A tmux server with one agent.
    fn with_agent(id: &str) -> Sight {
        let server = Process {
            pid: 100,
            name: "tmux: server".to_owned(),
            ..Process::default()
        };
        let agent = Process {
            pid: 200,
            parent: 100,
            name: "claude".to_owned(),
            args: vec!["claude".to_owned()],
            instance: Some(id.to_owned()),
            ..Process::default()
        };
        Sight::Seen(vec![server, agent])
    }

    #[test]
    fn agents_that_live_unseen_mean_the_wrong_place_unless_one_is_seen() {
        let sight = with_agent("b-1");
        let (a, b) = (row("a-1", Status::Error), row("b-1", Status::Error));
        assert!(wrong_place(&[a.clone(), b.clone()], Time(0), &sight).is_some());
        let alive = row("c-1", Status::Waiting);
        assert_eq!(
            wrong_place(&[a.clone(), b.clone(), alive.clone()], Time(0), &sight),
            None
        );
        let ssh = Session {
            is_ssh: true,
            ..alive
        };
        assert!(wrong_place(&[a.clone(), b, ssh], Time(0), &sight).is_some());
        assert_eq!(wrong_place(std::slice::from_ref(&a), Time(0), &sight), None);
        assert_eq!(
            wrong_place(&[a], Time(0), &Sight::Blind("macOS".to_owned())),
            None
        );
    }

    #[test]
    fn eyes_are_blind_when_no_living_session_is_seen() {
        let profile = Profile::parse("default").unwrap();
        let rows = [row("a-1", Status::Waiting), row("b-1", Status::Idle)];
        assert_eq!(blind(&profile, &rows, &with_agent("b-1")), None);
        assert!(blind(&profile, &rows, &with_agent("c-1")).is_some());
        assert!(blind(&profile, &[], &with_agent("c-1")).is_none());
        assert!(blind(&profile, &rows, &Sight::Blind("macOS".to_owned())).is_some());
    }
}
