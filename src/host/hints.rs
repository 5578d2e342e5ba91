//! Hints: reasons to look, each once, until somebody takes them.
//!
//! This file does not know where they come from, nor what is looked at.

use crate::model::SessionId;

/// More hints than this at once are one: look at everything.
const HINTS_MAX: usize = 256;

/// A reason to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The hook record of a session was replaced.
    Hook(SessionId),
    /// Something may have been missed: look at everything.
    Rescan,
    /// A flag came, went or changed.
    Flags,
    /// The watched process of a session has ended.
    Ended(SessionId),
    /// A watched tmux server has ended.
    ServerEnded,
    /// TERM or INT came, for the first time.
    Terminate,
    /// HUP came.
    Hangup,
}

/// Whose process is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// The pane process of a session.
    Agent(SessionId),
    /// A tmux server.
    Server,
}

impl Watched {
    /// What its end is worth.
    #[cfg(target_os = "linux")]
    pub(super) fn ended(&self) -> Hint {
        match self {
            Watched::Agent(id) => Hint::Ended(id.clone()),
            Watched::Server => Hint::ServerEnded,
        }
    }
}

/// Hints that nobody has taken yet, each once.
#[derive(Debug, Default)]
pub(super) struct Hints {
    waiting: Vec<Hint>,
    /// How many were ever noted, doubled ones too.
    pub(super) noted: u64,
}

impl Hints {
    pub(super) fn note(&mut self, hint: Hint) {
        self.noted = self.noted.wrapping_add(1);
        if self.waiting.contains(&hint) {
            return;
        }
        if self.waiting.len() < HINTS_MAX {
            self.waiting.push(hint);
            return;
        }
        self.waiting.retain(|known| match known {
            Hint::Hook(_) | Hint::Rescan | Hint::Ended(_) => false,
            Hint::Flags | Hint::ServerEnded | Hint::Terminate | Hint::Hangup => true,
        });
        self.waiting.push(Hint::Rescan);
        match hint {
            Hint::Hook(_) | Hint::Rescan | Hint::Ended(_) => {}
            Hint::Flags | Hint::ServerEnded | Hint::Terminate | Hint::Hangup => {
                self.waiting.push(hint);
            }
        }
    }

    /// Whether the end of something is among them.
    pub(super) fn has_end(&self) -> bool {
        let end = |hint: &Hint| matches!(hint, Hint::Ended(_) | Hint::ServerEnded);
        self.waiting.iter().any(end)
    }

    pub(super) fn take(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_noted_once_and_signals_outlast_a_flood() {
        let hook = |n: usize| Hint::Hook(SessionId::parse(&format!("a-{n}")).unwrap());
        let mut hints = Hints::default();
        for hint in [hook(1), Hint::Flags, hook(1), Hint::Flags] {
            hints.note(hint);
        }
        assert_eq!(hints.take(), [hook(1), Hint::Flags]);
        assert!(hints.take().is_empty());
        assert!(!hints.has_end());
        hints.note(Hint::Ended(SessionId::parse("a-1").unwrap()));
        assert!(hints.has_end());
        hints.take();
        hints.note(Hint::Terminate);
        (0..HINTS_MAX).for_each(|n| hints.note(hook(n)));
        hints.note(Hint::Hangup);
        assert_eq!(hints.take(), [Hint::Terminate, Hint::Rescan, Hint::Hangup]);
    }
}
