//! From an answer of `session restart` to budgets, back-offs and episodes.

use super::*;
use crate::guard::{self, Limits, Purpose, Rule, Surroundings};
use crate::model::{Flags, Profile};
use crate::state::Memory;

const NOW: Time = Time(2_000_000_000_000);

fn after(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

fn id() -> SessionId {
    SessionId::parse("1a2b3c4d-1755900429").unwrap()
}

/// A state in which a restart of the session has just begun.
fn begun() -> State {
    let mut state = State::default();
    state.memory(&Profile::parse("default").unwrap(), &id(), "ops 429");
    begin(&mut state, NOW);
    state
}

fn begin(state: &mut State, now: Time) {
    let flags = Flags::default();
    let around = Surroundings {
        flags: &flags,
        limits: Limits::default(),
        remembered: true,
    };
    guard::permit(state, &around, &id(), Purpose::Dead, "dead", now).unwrap();
    state.profile(&Profile::parse("default").unwrap()).running = None;
}

/// The command has answered at once.
fn accepted(state: &mut State, now: Time) {
    answered(state, &id(), &Restarted::Accepted(String::new()), now);
}

fn memory(state: &State) -> &Memory {
    state.sessions.get(&id()).unwrap()
}

/// Rules that refuse the next restart at that moment.
fn refusals(state: &State, now: Time) -> Vec<Rule> {
    let flags = Flags::default();
    let around = Surroundings {
        flags: &flags,
        limits: Limits::default(),
        remembered: true,
    };
    let verdict = guard::verdict(state, &around, &id(), Purpose::Dead, now);
    verdict.refusals().map(|answer| answer.rule).collect()
}

fn row(status: Status, substate: Option<Substate>) -> Session {
    Session {
        title: "ops 429".to_owned(),
        tool: "claude".to_owned(),
        command: "claude".to_owned(),
        status,
        substate,
        ..Session::new(Profile::parse("default").unwrap(), id())
    }
}

fn seen(state: &mut State, row: &Session, new_agent: bool, now: Time) -> Option<&'static str> {
    let since = Since {
        row,
        new_agent,
        seen: true,
    };
    verify(state, &id(), &since, now).map(|line| line.outcome)
}

#[test]
fn accepted_and_unknown_keep_the_slot_and_wait_for_the_outcome() {
    for answer in [
        Restarted::Accepted(String::new()),
        Restarted::Unknown("failed to save session state: database is locked".to_owned()),
    ] {
        let mut state = begun();
        answered(&mut state, &id(), &answer, NOW);
        assert_eq!(refusals(&state, after(59)), [Rule::Spacing, Rule::CoolDown]);
        assert_eq!(refusals(&state, after(60)), []);
        assert_eq!(memory(&state).restarts, [NOW]);
        assert!(
            memory(&state)
                .attempt
                .as_ref()
                .is_some_and(|a| a.outcome.is_none())
        );
    }
}

#[test]
fn what_did_not_happen_gives_the_slot_back() {
    for (answer, rule, seconds) in [
        (
            Restarted::Skipped("any reason".to_owned()),
            Rule::Skipped,
            15,
        ),
        (
            Restarted::Skipped("within 1m0s freshness window".to_owned()),
            Rule::Skipped,
            60,
        ),
        (
            Restarted::Skipped("they cannot fix a credential".to_owned()),
            Rule::Skipped,
            300,
        ),
        (
            Restarted::NotStarted("no such file".to_owned()),
            Rule::Skipped,
            60,
        ),
        (
            Restarted::NotStarted("Resource temporarily unavailable".to_owned()),
            Rule::HostTrouble,
            60,
        ),
        (
            Restarted::Failed("fork: resource temporarily unavailable".to_owned()),
            Rule::HostTrouble,
            60,
        ),
    ] {
        let mut state = begun();
        answered(&mut state, &id(), &answer, NOW);
        assert_eq!(memory(&state).restarts, [], "{answer:?}");
        assert_eq!(
            (state.last_restart, memory(&state).since_well),
            (None, 0),
            "{answer:?}"
        );
        assert_eq!(refusals(&state, after(seconds - 1)), [rule], "{answer:?}");
        assert_eq!(refusals(&state, after(seconds)), [], "{answer:?}");
    }
}

#[test]
fn declined_again_and_again_the_distances_double_up_to_five_minutes() {
    let mut state = begun();
    let mut now = NOW;
    for seconds in [15, 30, 60, 120, 240, 300, 300] {
        answered(
            &mut state,
            &id(),
            &Restarted::Skipped("busy".to_owned()),
            now,
        );
        assert_eq!(memory(&state).skipped.map(|b| b.seconds), Some(seconds));
        now = now.plus(Duration::from_secs(seconds));
        begin(&mut state, now);
    }
    answered(&mut state, &id(), &Restarted::Accepted(String::new()), now);
    assert_eq!(memory(&state).skipped, None);
}

#[test]
fn a_rate_limit_holds_everybody_and_is_no_crash() {
    let mut state = begun();
    let limit = Restarted::Failed("HTTP 429: slow down".to_owned());
    let line = answered(&mut state, &id(), &limit, NOW);
    assert_eq!(line.outcome, "limited");
    assert_eq!(memory(&state).since_well, 0);
    assert_eq!(refusals(&state, after(179)), [Rule::RateLimit]);
    assert_eq!(refusals(&state, after(180)), []);
    // It goes on: twice as long each time, up to half an hour.
    let mut now = after(180);
    for seconds in [360, 720, 1440, 1800, 1800] {
        begin(&mut state, now);
        answered(&mut state, &id(), &limit, now);
        assert_eq!(state.rate_limit.map(|b| b.seconds), Some(seconds));
        now = now.plus(Duration::from_secs(seconds));
    }
    begin(&mut state, now);
    answered(&mut state, &id(), &Restarted::Accepted(String::new()), now);
    assert_eq!(state.rate_limit, None);
}

#[test]
fn numbers_in_ids_and_titles_are_no_rate_limit() {
    let mut state = begun();
    let text = format!("cannot start ops 429 ({})", id());
    let line = answered(&mut state, &id(), &Restarted::Failed(text), NOW);
    assert_eq!((line.outcome, state.rate_limit), ("failed", None));
}

#[test]
fn the_third_failure_in_a_row_is_told_with_its_text() {
    let mut state = begun();
    let failed = Restarted::Failed("address already in use".to_owned());
    for count in 0..3 {
        let now = after(60 * count);
        if count > 0 {
            begin(&mut state, now);
        }
        assert!(state.episodes.is_empty());
        answered(&mut state, &id(), &failed, now);
    }
    assert_eq!(state.episodes.len(), 1);
    assert!(
        state.episodes[0]
            .text
            .contains("3 times in a row with: address already in use")
    );
    assert_eq!(refusals(&state, after(120 + 299)), [Rule::CrashLoop]);
    assert_eq!(refusals(&state, after(120 + 300)), []);
}

#[test]
fn an_ambiguous_answer_is_told_at_once_with_its_words() {
    let mut state = begun();
    let answer = Restarted::Failed("AMBIGUOUS: two sessions fit".to_owned());
    answered(&mut state, &id(), &answer, NOW);
    assert!(
        state.episodes[0]
            .text
            .contains("AMBIGUOUS: two sessions fit")
    );
}

#[test]
fn done_needs_a_new_agents_process() {
    let mut state = begun();
    accepted(&mut state, NOW);
    let error = row(Status::Error, None);
    assert_eq!(seen(&mut state, &error, false, after(59)), None);
    assert_eq!(seen(&mut state, &error, true, after(59)), Some("done"));
    // Once is enough.
    assert_eq!(seen(&mut state, &error, true, after(60)), None);
}

#[test]
fn while_the_command_runs_nothing_is_missed() {
    let mut state = begun();
    let error = row(Status::Error, None);
    assert_eq!(seen(&mut state, &error, false, after(170)), None);
    accepted(&mut state, after(170));
    assert_eq!(seen(&mut state, &error, false, after(229)), None);
    assert_eq!(
        seen(&mut state, &error, false, after(230)),
        Some("no effect")
    );
}

#[test]
fn without_a_process_the_list_decides_when_the_cool_down_ends() {
    for (status, outcome, told) in [
        (Status::Waiting, "unverified", 0),
        (Status::Stopped, "unverified", 0),
        (Status::Starting, "unverified", 1),
        (Status::Error, "no effect", 1),
    ] {
        let mut state = begun();
        accepted(&mut state, NOW);
        let row = row(status.clone(), None);
        assert_eq!(seen(&mut state, &row, false, after(59)), None, "{status:?}");
        assert_eq!(
            seen(&mut state, &row, false, after(60)),
            Some(outcome),
            "{status:?}"
        );
        assert_eq!(state.episodes.len(), told, "{status:?}");
    }
}

#[test]
fn two_in_a_row_without_effect_are_a_crash_loop() {
    let mut state = begun();
    accepted(&mut state, NOW);
    let error = row(Status::Error, None);
    seen(&mut state, &error, false, after(60));
    assert_eq!(refusals(&state, after(60)), []);
    begin(&mut state, after(60));
    accepted(&mut state, after(60));
    assert_eq!(
        seen(&mut state, &error, false, after(120)),
        Some("no effect")
    );
    assert_eq!(refusals(&state, after(60 + 299)), [Rule::CrashLoop]);
    // One that worked in between starts the count anew.
    let mut state = begun();
    accepted(&mut state, NOW);
    seen(&mut state, &error, false, after(60));
    begin(&mut state, after(60));
    accepted(&mut state, after(60));
    seen(&mut state, &error, true, after(61));
    begin(&mut state, after(400));
    accepted(&mut state, after(400));
    state.sessions.get_mut(&id()).unwrap().crash_loop = None;
    seen(&mut state, &error, false, after(460));
    assert_eq!(memory(&state).without_effect, 1);
}

#[test]
fn a_usage_limit_on_the_new_screen_is_no_crash() {
    let mut state = begun();
    accepted(&mut state, NOW);
    let limit = row(Status::Waiting, Some(Substate::UsageLimit));
    assert_eq!(seen(&mut state, &limit, true, after(5)), Some("limited"));
    assert_eq!(memory(&state).since_well, 0);
}

#[test]
fn well_forgives_everything_and_clear_keeps_the_window() {
    let mut state = begun();
    for at in [60, 120] {
        answered(
            &mut state,
            &id(),
            &Restarted::Failed("x".to_owned()),
            after(at),
        );
        begin(&mut state, after(at));
    }
    answered(
        &mut state,
        &id(),
        &Restarted::Failed("x".to_owned()),
        after(120),
    );
    let mut cleared = state.clone();
    assert!(clear(&mut cleared, &id()));
    assert_eq!(refusals(&cleared, after(200)), [Rule::Burst]);
    well(&mut state, &id(), after(900));
    assert_eq!(
        (memory(&state).since_well, memory(&state).crash_loop),
        (0, None)
    );
    assert!(
        state
            .outbox
            .last()
            .unwrap()
            .text
            .contains("recovered after")
    );
    assert!(!clear(&mut State::default(), &id()));
}

#[test]
fn the_distances_of_a_crash_loop_grow_to_an_hour() {
    for (count, minutes) in [
        (3, 5),
        (4, 10),
        (5, 20),
        (6, 40),
        (7, 60),
        (8, 60),
        (u32::MAX, 60),
    ] {
        assert_eq!(crash_loop(count, NOW).seconds, minutes * 60, "{count}");
    }
}
