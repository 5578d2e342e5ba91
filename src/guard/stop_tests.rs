//! Tests of `stop.rs`: every combination of what a stop wants, counted again by
//! one sentence.

use super::fixtures::{NOW, at, row};
use super::*;
use crate::model::Pause;

const STEP: u64 = 3600;

fn flags(autostop: bool) -> Flags {
    Flags {
        autostop: autostop.then(|| row().id).into_iter().collect(),
        ..Flags::default()
    }
}

fn around(flags: &Flags, terminate: bool) -> Surroundings<'_> {
    let mut around = fixtures::around(flags);
    around.limits.terminate = terminate;
    around
}

/// A child about which everything has been done, and that was told at `NOW`.
fn handed_over() -> State {
    let mut state = State::default();
    let child = state.child(&row());
    child.rung = Rung::HandedOver;
    child.nudges = 3;
    child.told = Some(NOW);
    state
}

fn refusals(state: &State, around: &Surroundings, now: Time) -> Vec<Rule> {
    let verdict = stop_verdict(state, around, &row(), now);
    verdict.refusals().map(|answer| answer.rule).collect()
}

/// I5, T22: setting, flag, rung, nudges, told and gap, each against each.
#[test]
fn a_stop_needs_both_opt_ins_and_all_that_comes_before() {
    let mut agreed = 0;
    for terminate in [false, true] {
        for flag in [false, true] {
            let flags = flags(flag);
            let around = around(&flags, terminate);
            for rung in Rung::ALL {
                for nudges in [0, 1, 2, 3, 4] {
                    for told in [None, Some(0), Some(1), Some(STEP), Some(STEP + 1)] {
                        for gap in [None, Some(0), Some(59), Some(60)] {
                            let mut state = handed_over();
                            let now = at(10 * STEP);
                            let ago = |seconds: u64| now.minus(Duration::from_secs(seconds));
                            let child = state.child(&row());
                            child.rung = *rung;
                            child.nudges = nudges;
                            child.told = told.map(ago);
                            state.profile(&row().profile).gap = gap.map(ago);
                            let wanted = terminate
                                && flag
                                && *rung == Rung::HandedOver
                                && nudges >= 3
                                && told.is_some_and(|told| told >= STEP)
                                && gap.is_none_or(|gap| gap >= 60);
                            let verdict = stop_verdict(&state, &around, &row(), now);
                            assert_eq!(verdict.agrees(), wanted, "{}", verdict.sentence());
                            let before = state.clone();
                            let permit = stop_permit(&mut state, &around, &row(), now);
                            assert_eq!(permit.is_ok(), wanted);
                            assert_eq!(state == before, !wanted, "a refusal takes nothing");
                            agreed += u32::from(wanted);
                        }
                    }
                }
            }
        }
    }
    // Two numbers of nudges, two times, two gaps.
    assert_eq!(agreed, 8);
}

#[test]
fn each_rule_refuses_by_itself() {
    let opted = flags(true);
    let both = around(&opted, true);
    let state = handed_over();
    let now = at(STEP);
    assert_eq!(refusals(&state, &both, now), []);
    assert_eq!(refusals(&state, &both, at(STEP - 1)), [Rule::Step]);
    assert_eq!(refusals(&state, &around(&opted, false), now), [Rule::OptIn]);
    let none = flags(false);
    assert_eq!(refusals(&state, &around(&none, true), now), [Rule::OptIn]);
    let other = Flags {
        autostop: vec![SessionId::parse("1a2b3c4d-1755900002").unwrap()],
        ..Flags::default()
    };
    assert_eq!(refusals(&state, &around(&other, true), now), [Rule::OptIn]);
    let paused = Flags {
        pause: Some(Pause {
            since: NOW,
            until: None,
        }),
        ..flags(true)
    };
    assert_eq!(
        refusals(&state, &around(&paused, true), now),
        [Rule::Paused]
    );
    let held = Flags {
        hold: vec![(row().id, None)],
        ..flags(true)
    };
    assert_eq!(refusals(&state, &around(&held, true), now), [Rule::Held]);
    let unsaved = Surroundings {
        remembered: false,
        ..both.clone()
    };
    assert_eq!(refusals(&state, &unsaved, now), [Rule::Memory]);
    // What a message did wrong, or a stop: never in this episode.
    let mut silent = handed_over();
    silent.child(&row()).silent = "could not be stopped".to_owned();
    assert_eq!(refusals(&silent, &both, at(100 * STEP)), [Rule::Silenced]);
    // Nobody is known, or all was forgotten.
    let unknown = [Rule::Nudges];
    assert_eq!(refusals(&State::default(), &both, now), unknown);
    assert_eq!(refusals(&State::spent(NOW), &both, now), unknown);
    // More nudges are wanted by now, and none were when there is no limit.
    let limits = |max_nudges| Surroundings {
        limits: Limits {
            max_nudges,
            ..both.limits
        },
        ..both.clone()
    };
    assert_eq!(refusals(&state, &limits(4), now), unknown);
    assert_eq!(refusals(&state, &limits(0), now), []);
    let mut never_asked = handed_over();
    never_asked.child(&row()).nudges = 0;
    assert_eq!(refusals(&never_asked, &limits(0), now), unknown);
}

#[test]
fn a_permit_notes_its_intent_and_there_is_no_second_one() {
    let flags = flags(true);
    let around = around(&flags, true);
    let mut state = handed_over();
    let permit = stop_permit(&mut state, &around, &row(), at(STEP)).unwrap();
    assert_eq!((permit.id(), permit.profile()), (&row().id, &row().profile));
    let running = state.profile(&row().profile).running.clone().unwrap();
    assert!(running.stops && !running.sends && !running.tells);
    assert_eq!(running.in_words(), "stop of 1a2b3c4d-1755900001");
    assert_eq!(refusals(&state, &around, at(STEP)), [Rule::Busy]);
}
