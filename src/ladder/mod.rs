//! The ladder for waiting children (`ladder.md`): what follows from what, and
//! the one function through which a child changes its rung.
//!
//! [`next`] is the table of transitions: each arm names its row, T1 to T32.
//! Events are what was seen or done; none of them is decided here, and what is
//! done about a transition is done elsewhere.

use crate::state::{Child, Rung};

pub mod batch;
mod fresh;
pub mod notices;
pub mod triage;

pub use fresh::is_fresh;

/// What happens to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A good list says something of it.
    Listed(Listed),
    /// Its screen was read, and shows something.
    Screen(Shows),
    /// Something was done about it.
    Deed(Deed),
    /// What becomes of one that reads dead.
    Death(Death),
}

/// What a good list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// It waits.
    Waits,
    /// It runs, rests, is queued, or agent-deck does not know.
    Left,
    /// That has lasted for the recovery time.
    Recovered,
    /// It reads dead.
    Error,
    /// It was stopped.
    Stopped,
    /// It has said that its work is over, since it last began to run.
    Completed,
    /// Good lists have lacked it for ten minutes.
    Gone,
    /// It is archived, no child any more, or conductor-like.
    Exempt,
}

/// What a screen shows of a child that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Something else than before.
    Change,
    /// A decision.
    Decision,
    /// No decision, no limit.
    Plain,
    /// A usage limit or a login problem.
    Limit,
    /// It is unchanged for the threshold.
    Threshold,
    /// It is due to be asked, and its composer is not free.
    NoComposer,
    /// Its composer is free.
    Composer,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It was asked to report.
    Asked,
    /// The message did something else than to ask.
    Misfired,
    /// Somebody was told of the decision, or of what holds it.
    Told,
    /// It was asked as often as it may be, and there is no triage, or that is
    /// used up.
    Spent,
    /// Triage was asked.
    Triaged,
    /// Triage gives it more time.
    Extended,
    /// Triage advises to stop it.
    Advised,
    /// Its stop was begun.
    StopBegun,
    /// It did not stop.
    StopFailed,
}

/// What becomes of one that reads dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It was dead before this memory began.
    Old,
    /// Its screen still moves.
    Moves,
    /// It is confirmed.
    Confirmed,
}

/// A transition: its row in `ladder.md`, and where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Such as `T16`.
    pub row: &'static str,
    /// The rung that follows.
    pub to: Rung,
}

const fn to(row: &'static str, to: Rung) -> Option<Step> {
    Some(Step { row, to })
}

/// What follows for a child on rung `at` that comes back to `under`. `None`:
/// nothing, the event does not concern it there.
pub fn next(at: Rung, under: Rung, event: Event) -> Option<Step> {
    match event {
        Event::Listed(listed) => of_list(at, under, listed),
        Event::Screen(shows) => of_screen(at, under, shows),
        Event::Deed(deed) => of_deed(at, deed),
        Event::Death(death) => of_death(at, death),
    }
}

fn of_list(at: Rung, under: Rung, listed: Listed) -> Option<Step> {
    use Rung::{
        CannotAsk, Clear, Dead, Dying, Gated, HandedOver, Held, Nudged, Settled, StoppedByUs,
        Stopping, Triage, Watching,
    };
    match listed {
        Listed::Waits => match at {
            Clear => to("T1", Watching),
            Settled | StoppedByUs => to("T32", Watching),
            Dying => to("T26", under),
            // It lives, and its episode goes on where it was.
            Dead => to("T30", under),
            Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver | Stopping => None,
        },
        Listed::Left => match at {
            Watching | Nudged | Triage | HandedOver => to("T3", at),
            Gated | CannotAsk | Held => to("T3", under),
            Stopping => to("T3", HandedOver),
            Dying => to("T26", under),
            Dead => to("T30", Dead),
            Settled | StoppedByUs => to("T32", Clear),
            Clear => None,
        },
        Listed::Recovered => match at {
            Watching | Nudged | Triage | HandedOver | Dead => to("T4", Clear),
            Gated | CannotAsk | Held | Stopping | Dying => to("T4", Clear),
            Clear | Settled | StoppedByUs => None,
        },
        Listed::Error => match at {
            Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver
            | Stopping | Settled | StoppedByUs => to("T25", Dying),
            Dead => to("T29", Dead),
            Dying => None,
        },
        Listed::Stopped => match at {
            Stopping => to("T23", StoppedByUs),
            Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver | Dying
            | Dead => to("1.5/4", Settled),
            Settled | StoppedByUs => None,
        },
        Listed::Completed => match at {
            Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver
            | Stopping | Dying | Dead | StoppedByUs => to("1.5/5", Settled),
            Settled => None,
        },
        Listed::Gone => match at {
            Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver
            | Stopping | Dying | Dead | StoppedByUs => to("1.5/2", Settled),
            Settled => None,
        },
        Listed::Exempt => match at {
            Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver | Stopping
            | StoppedByUs | Dying | Dead | Settled => to("1.5/3", Clear),
            Clear => None,
        },
    }
}

fn of_screen(at: Rung, under: Rung, shows: Shows) -> Option<Step> {
    use Rung::{
        CannotAsk, Clear, Dead, Dying, Gated, HandedOver, Held, Nudged, Settled, StoppedByUs,
        Stopping, Triage, Watching,
    };
    match shows {
        Shows::Change => match at {
            Watching | Nudged | Triage | HandedOver => to("T2", at),
            CannotAsk => to("T7c", under),
            Clear | Gated | Held | Stopping | StoppedByUs | Dying | Dead | Settled => None,
        },
        Shows::Decision => match at {
            Clear | Watching | CannotAsk | Held | Nudged | Triage | HandedOver | Stopping => {
                to("T16", Gated)
            }
            Gated | StoppedByUs | Dying | Dead | Settled => None,
        },
        Shows::Limit => match at {
            Watching | Gated | CannotAsk | Nudged | Triage | HandedOver | Stopping => {
                to("1.5/8", Held)
            }
            Clear | Held | StoppedByUs | Dying | Dead | Settled => None,
        },
        Shows::Plain => match at {
            Gated => to("T18", under),
            Held => to("T20", under),
            Clear | Watching | CannotAsk | Nudged | Triage | HandedOver | Stopping
            | StoppedByUs | Dying | Dead | Settled => None,
        },
        Shows::Threshold => match at {
            Watching => to("T5", Watching),
            Clear | Gated | CannotAsk | Held | Nudged | Triage | HandedOver | Stopping
            | StoppedByUs | Dying | Dead | Settled => None,
        },
        Shows::NoComposer => match at {
            Watching | Nudged => to("T7b", CannotAsk),
            Clear | Gated | CannotAsk | Held | Triage | HandedOver | Stopping | StoppedByUs
            | Dying | Dead | Settled => None,
        },
        Shows::Composer => match at {
            CannotAsk => to("T7c", under),
            Clear | Watching | Gated | Held | Nudged | Triage | HandedOver | Stopping
            | StoppedByUs | Dying | Dead | Settled => None,
        },
    }
}

fn of_deed(at: Rung, deed: Deed) -> Option<Step> {
    use Rung::{
        CannotAsk, Clear, Dead, Dying, Gated, HandedOver, Held, Nudged, Settled, StoppedByUs,
        Stopping, Triage, Watching,
    };
    match deed {
        Deed::Asked => match at {
            Watching | Nudged => to("T6", Nudged),
            Triage => to("T12", Triage),
            Clear | Gated | CannotAsk | Held | HandedOver | Stopping | StoppedByUs | Dying
            | Dead | Settled => None,
        },
        Deed::Misfired => match at {
            Watching | Nudged | Triage | Gated | CannotAsk | Held => to("T8", HandedOver),
            Clear | HandedOver | Stopping | StoppedByUs | Dying | Dead | Settled => None,
        },
        Deed::Told => match at {
            Gated => to("T17", Gated),
            Held => to("T19", Held),
            HandedOver => to("T21", HandedOver),
            Clear | Watching | CannotAsk | Nudged | Triage | Stopping | StoppedByUs | Dying
            | Dead | Settled => None,
        },
        Deed::Spent => match at {
            Nudged => to("T11", HandedOver),
            Triage => to("T14", HandedOver),
            Clear | Watching | Gated | CannotAsk | Held | HandedOver | Stopping | StoppedByUs
            | Dying | Dead | Settled => None,
        },
        Deed::Triaged => match at {
            Nudged | Triage => to("T10", Triage),
            Clear | Watching | Gated | CannotAsk | Held | HandedOver | Stopping | StoppedByUs
            | Dying | Dead | Settled => None,
        },
        Deed::Extended => match at {
            Triage => to("T13", Triage),
            Clear | Watching | Gated | CannotAsk | Held | Nudged | HandedOver | Stopping
            | StoppedByUs | Dying | Dead | Settled => None,
        },
        Deed::Advised => match at {
            Triage => to("T15", HandedOver),
            Clear | Watching | Gated | CannotAsk | Held | Nudged | HandedOver | Stopping
            | StoppedByUs | Dying | Dead | Settled => None,
        },
        Deed::StopBegun => match at {
            HandedOver => to("T22", Stopping),
            Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | Stopping
            | StoppedByUs | Dying | Dead | Settled => None,
        },
        Deed::StopFailed => match at {
            Stopping => to("T24", HandedOver),
            Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver
            | StoppedByUs | Dying | Dead | Settled => None,
        },
    }
}

fn of_death(at: Rung, death: Death) -> Option<Step> {
    use Rung::{
        CannotAsk, Clear, Dead, Dying, Gated, HandedOver, Held, Nudged, Settled, StoppedByUs,
        Stopping, Triage, Watching,
    };
    match at {
        Dying => match death {
            Death::Old => to("T31", Dead),
            Death::Moves => to("T27", Dying),
            Death::Confirmed => to("T28", Dead),
        },
        Clear | Watching | Gated | CannotAsk | Held | Nudged | Triage | HandedOver | Stopping
        | StoppedByUs | Dead | Settled => None,
    }
}

/// Whether a rung lies over another one, to which it comes back.
fn lies_over(rung: Rung) -> bool {
    match rung {
        Rung::Gated | Rung::CannotAsk | Rung::Held | Rung::Dying | Rung::Dead => true,
        Rung::Clear
        | Rung::Watching
        | Rung::Nudged
        | Rung::Triage
        | Rung::HandedOver
        | Rung::Stopping
        | Rung::StoppedByUs
        | Rung::Settled => false,
    }
}

/// Moves a child: the only place where its rung changes.
pub fn happens(child: &mut Child, event: Event) -> Option<Step> {
    let step = next(child.rung, child.under, event)?;
    if lies_over(step.to) && !lies_over(child.rung) {
        child.under = child.rung;
    }
    child.rung = step.to;
    Some(step)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
