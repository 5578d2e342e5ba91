//! The table of transitions, held against the page.

use super::*;
use crate::model::{Profile, Session, SessionId};

fn events() -> Vec<Event> {
    let listed = [
        Listed::Waits,
        Listed::Left,
        Listed::Recovered,
        Listed::Error,
        Listed::Stopped,
        Listed::Completed,
        Listed::Gone,
        Listed::Exempt,
    ];
    let shows = [
        Shows::Change,
        Shows::Decision,
        Shows::Plain,
        Shows::Limit,
        Shows::Threshold,
        Shows::NoComposer,
        Shows::Composer,
    ];
    let deeds = [
        Deed::Asked,
        Deed::Misfired,
        Deed::Told,
        Deed::Spent,
        Deed::Triaged,
        Deed::Extended,
        Deed::Advised,
        Deed::StopBegun,
        Deed::StopFailed,
    ];
    let deaths = [Death::Old, Death::Moves, Death::Confirmed];
    let listed = listed.into_iter().map(Event::Listed);
    let shows = shows.into_iter().map(Event::Screen);
    let deeds = deeds.into_iter().map(Event::Deed);
    let deaths = deaths.into_iter().map(Event::Death);
    listed.chain(shows).chain(deeds).chain(deaths).collect()
}

/// All rows that the table has, with where they lead from.
fn rows() -> Vec<(&'static str, Rung, Event, Rung)> {
    let mut rows = Vec::new();
    for &at in Rung::ALL {
        for event in events() {
            if let Some(step) = next(at, Rung::Nudged, event) {
                rows.push((step.row, at, event, step.to));
            }
        }
    }
    rows
}

/// T5, T9, T7 and T29 move nobody, and T9 is a T6 with another answer.
#[test]
fn every_transition_of_the_page_is_in_the_table() {
    let rows = rows();
    for number in 1..=32 {
        let name = format!("T{number}");
        let is_there = rows.iter().any(|(row, ..)| *row == name);
        assert_eq!(is_there, !["T7", "T9"].contains(&name.as_str()), "{name}");
    }
    for name in ["T7b", "T7c"] {
        assert!(rows.iter().any(|(row, ..)| *row == name), "{name}");
    }
}

#[test]
fn only_a_visible_end_leads_to_dead_and_only_deeds_lead_up() {
    for (row, at, event, to) in rows() {
        let by_us = matches!(event, Event::Deed(_));
        let up = |rung| matches!(rung, Rung::Nudged | Rung::Triage | Rung::Stopping);
        if up(to) && to != at {
            let comes_back = matches!(
                at,
                Rung::Gated | Rung::CannotAsk | Rung::Held | Rung::Dying | Rung::Dead
            );
            assert!(by_us || (comes_back && to == Rung::Nudged), "{row} {at:?}");
        }
        if to == Rung::Dead && at != Rung::Dead {
            assert_eq!(at, Rung::Dying, "{row}");
        }
        if to == Rung::StoppedByUs {
            assert_eq!((at, row), (Rung::Stopping, "T23"));
        }
    }
}

/// I9: who waits for a decision, or is held, climbs no further.
#[test]
fn a_decision_and_a_hold_freeze_the_ladder() {
    for at in [Rung::Gated, Rung::Held] {
        for event in events() {
            let deed =
                matches!(event, Event::Deed(deed) if !matches!(deed, Deed::Told | Deed::Misfired));
            if deed {
                assert_eq!(next(at, Rung::Nudged, event), None, "{at:?} {event:?}");
            }
        }
    }
}

fn child() -> Child {
    let profile = Profile::parse("default").unwrap();
    let id = SessionId::parse("1a2b3c4d-1755900001").unwrap();
    Child::new(&Session::new(profile, id), None)
}

#[test]
fn what_lies_over_a_rung_comes_back_to_it() {
    let waits = Event::Listed(Listed::Waits);
    let (decision, plain) = (Event::Screen(Shows::Decision), Event::Screen(Shows::Plain));
    for &rung in &[Rung::Watching, Rung::Nudged, Rung::Triage, Rung::HandedOver] {
        let mut child = child();
        child.rung = rung;
        happens(&mut child, Event::Screen(Shows::Limit));
        assert_eq!(child.rung, Rung::Held);
        happens(&mut child, decision);
        assert_eq!(child.rung, Rung::Gated, "one over the other");
        happens(&mut child, Event::Listed(Listed::Error));
        assert_eq!(child.rung, Rung::Dying);
        happens(&mut child, waits);
        assert_eq!(child.rung, rung);
        happens(&mut child, decision);
        happens(&mut child, plain);
        assert_eq!(child.rung, rung);
    }
}

#[test]
fn a_recovery_closes_every_rung_that_is_open() {
    for &at in Rung::ALL {
        let after = next(at, Rung::Clear, Event::Listed(Listed::Recovered));
        let closed = matches!(at, Rung::Clear | Rung::Settled | Rung::StoppedByUs);
        assert_eq!(after.map(|step| step.to), (!closed).then_some(Rung::Clear));
    }
}
