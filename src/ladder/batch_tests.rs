//! How children end, when a batch opens, settles and is told, when children are
//! asked for, and every wording, as tables.

use super::*;
use crate::model::Profile;

const NOW: Time = Time(2_000_000_000_000);
const MINIMUM: usize = 2;

fn at(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

fn id(n: usize) -> SessionId {
    SessionId::parse(&format!("{n}-1")).unwrap()
}

fn parent() -> Parent {
    Parent::new(&Profile::parse("default").unwrap(), &id(0), "conductor-ops")
}

fn ids(count: usize) -> Vec<SessionId> {
    (1..=count).map(id).collect()
}

fn kid(id: &SessionId, stand: Stand, ending: Ending) -> Kid<'_> {
    Kid {
        id,
        group: "work",
        stand,
        ending,
        said: matches!(ending, Ending::Done | Ending::Failed),
    }
}

/// One step at that moment; members that are not listed are gone.
fn step_at(parent: &mut Parent, kids: &[Kid], now: Time) -> Change {
    let round = Round {
        stays: &|_| false,
        minimum: MINIMUM,
        gap: None,
        now,
    };
    step(parent, kids, &round)
}

/// A batch of so many, all at work.
fn opened(ids: &[SessionId]) -> Parent {
    let mut parent = parent();
    let kids: Vec<Kid> = ids
        .iter()
        .map(|id| kid(id, Stand::Works, Ending::Open))
        .collect();
    assert_eq!(step_at(&mut parent, &kids, NOW), Change::Nothing);
    assert_eq!((parent.batch, parent.members.len()), (1, ids.len()));
    parent
}

fn done(ids: &[SessionId]) -> Vec<Kid<'_>> {
    ids.iter()
        .map(|id| kid(id, Stand::Rests, Ending::Done))
        .collect()
}

#[test]
fn how_a_child_ended() {
    use Status::{Error, Idle, Queued, Running, Starting, Stopped, Waiting};
    let profile = Profile::parse("default").unwrap();
    let row = |status: &Status| Session {
        status: status.clone(),
        created: Some(at(0)),
        ..Session::new(profile.clone(), id(1))
    };
    for status in [Waiting, Idle, Running, Queued, Starting, Error, Stopped] {
        let row = row(&status);
        let ends = |rung: Rung, nudges: u32| {
            let mut child = Child::new(&row, None);
            child.rung = rung;
            child.nudges = nudges;
            Kid::of(&row, Some(&child)).ending
        };
        let unknown = Kid::of(&row, None).ending;
        for rung in Rung::ALL.iter().copied() {
            for nudges in [0, 3] {
                let wanted = match (&status, rung, nudges) {
                    (Stopped, Rung::StoppedByUs, _) => Ending::StoppedByUs,
                    (Stopped, ..) => Ending::Stopped,
                    (Error, Rung::Dead, _) => Ending::Died,
                    (Waiting, Rung::HandedOver, 3) => Ending::Unresponsive,
                    _ => Ending::Open,
                };
                assert_eq!(ends(rung, nudges), wanted, "{status:?} {rung:?} {nudges}");
            }
        }
        assert_eq!(unknown == Ending::Stopped, status == Stopped);
        // What it has said itself comes first, as long as it is fresh.
        for (over, ran, ok, wanted) in [
            (50, Some(40), true, Some(Ending::Done)),
            (50, None, false, Some(Ending::Failed)),
            (30, Some(40), true, None),
        ] {
            let mut child = Child::new(&row, None);
            (child.over, child.ran, child.over_ok) = (Some(at(over)), ran.map(at), ok);
            let kid = Kid::of(&row, Some(&child));
            assert_eq!(kid.ending, wanted.unwrap_or(unknown), "{status:?} {over}");
            assert!(kid.said);
        }
    }
}

#[test]
fn a_batch_is_told_once_when_all_are_over_and_quiet() {
    let ids = ids(3);
    let mut parent = opened(&ids);
    let mut kids = done(&ids);
    kids[2] = kid(&ids[2], Stand::Down, Ending::Died);
    assert_eq!(step_at(&mut parent, &kids, at(10)), Change::Nothing);
    assert_eq!(step_at(&mut parent, &kids, at(129)), Change::Nothing);
    let text = "3 children of group \"work\" ended: 2 done, 1 died (what they say themselves, \
                not checked)";
    assert_eq!(
        step_at(&mut parent, &kids, at(130)),
        Change::Announce(text.to_owned())
    );
    assert_eq!(parent.announced, ids);
    // Whatever they do, they are not told of again.
    for stand in [Stand::Works, Stand::Rests, Stand::Down] {
        let again: Vec<Kid> = ids.iter().map(|id| kid(id, stand, Ending::Open)).collect();
        for seconds in [200, 4000, 90_000] {
            assert_eq!(step_at(&mut parent, &again, at(seconds)), Change::Nothing);
            assert_eq!(
                step_at(&mut parent, &kids, at(seconds + 1)),
                Change::Nothing
            );
        }
    }
    assert_eq!((parent.batch, parent.members.len()), (1, 0));
}

#[test]
fn one_that_is_not_over_keeps_it_open() {
    let ids = ids(3);
    for stand in [Stand::Works, Stand::Rests, Stand::Down, Stand::Unknown] {
        let mut parent = opened(&ids);
        let mut kids = done(&ids);
        kids[1] = kid(&ids[1], stand, Ending::Open);
        for seconds in [10, 200, 4000, 90_000] {
            assert_eq!(step_at(&mut parent, &kids, at(seconds)), Change::Nothing);
        }
        assert_eq!(parent.members.len(), 3);
    }
}

#[test]
fn whatever_moves_while_it_settles_begins_it_anew() {
    let ids = ids(3);
    let two = &ids[..2];
    let (all_done, working) = (done(two), kid(&ids[0], Stand::Works, Ending::Open));
    // One is at work again.
    let mut parent = opened(two);
    step_at(&mut parent, &all_done, at(10));
    step_at(&mut parent, &[working, all_done[1]], at(100));
    assert_eq!(parent.settling_since, None);
    step_at(&mut parent, &all_done, at(110));
    assert_eq!(step_at(&mut parent, &all_done, at(229)), Change::Nothing);
    assert!(matches!(
        step_at(&mut parent, &all_done, at(230)),
        Change::Announce(_)
    ));
    // One more comes, over or not.
    let mut parent = opened(two);
    step_at(&mut parent, &all_done, at(10));
    step_at(&mut parent, &done(&ids), at(100));
    assert_eq!(step_at(&mut parent, &done(&ids), at(219)), Change::Nothing);
    let told = step_at(&mut parent, &done(&ids), at(220));
    assert!(
        matches!(&told, Change::Announce(text) if text.starts_with("3 ")),
        "{told:?}"
    );
    // Nobody looked for a while.
    let mut parent = opened(two);
    step_at(&mut parent, &all_done, at(10));
    let after_gap = |now| Round {
        stays: &|_| false,
        minimum: MINIMUM,
        gap: Some(at(9000)),
        now,
    };
    assert_eq!(
        step(&mut parent, &all_done, &after_gap(at(9000))),
        Change::Nothing
    );
    assert_eq!(
        step(&mut parent, &all_done, &after_gap(at(9119))),
        Change::Nothing
    );
    let told = step(&mut parent, &all_done, &after_gap(at(9120)));
    assert!(matches!(told, Change::Announce(_)));
}

#[test]
fn what_was_over_at_first_sight_is_no_news() {
    let ids = ids(3);
    let mut parent = parent();
    for seconds in [0, 10, 500] {
        assert_eq!(
            step_at(&mut parent, &done(&ids), at(seconds)),
            Change::Nothing
        );
    }
    assert_eq!((parent.announced.len(), parent.batch), (3, 0));
    // Only who was never seen opens one, alone.
    let fourth = id(4);
    let mut kids = done(&ids);
    kids.push(kid(&fourth, Stand::Works, Ending::Open));
    step_at(&mut parent, &kids, at(600));
    assert_eq!((parent.members.len(), parent.batch), (1, 1));
    // One of which is not known whether it is dead settles nothing.
    let mut parent = self::parent();
    let mut kids = done(&ids);
    kids[0] = kid(&ids[0], Stand::Down, Ending::Open);
    step_at(&mut parent, &kids, at(0));
    assert_eq!((parent.announced.len(), parent.members.len()), (0, 0));
}

#[test]
fn who_has_left_does_not_count_and_small_batches_are_closed_in_silence() {
    let ids = ids(3);
    // Two of three are removed: too small.
    let mut parent = opened(&ids);
    let one = done(&ids[..1]);
    step_at(&mut parent, &one, at(10));
    assert_eq!(step_at(&mut parent, &one, at(130)), Change::Closed);
    assert_eq!(parent.announced, ids[..1]);
    // All are removed.
    let mut parent = opened(&ids);
    assert_eq!(step_at(&mut parent, &[], at(10)), Change::Closed);
    assert_eq!(step_at(&mut parent, &[], at(500)), Change::Nothing);
    assert!(parent.announced.is_empty());
    // One is only missing for now: it stays what it was.
    let mut parent = opened(&ids);
    let round = Round {
        stays: &|_| true,
        minimum: MINIMUM,
        gap: None,
        now: at(500),
    };
    let two = done(&ids[..2]);
    assert_eq!(step(&mut parent, &two, &round), Change::Nothing);
    assert_eq!(parent.members.len(), 3);
    assert_eq!(parent.settling_since, None);
}

#[test]
fn a_batch_in_which_nobody_says_anything_is_mentioned_once() {
    let ids = ids(2);
    let waiting = |said| {
        let of = |id| Kid {
            said,
            ..kid(id, Stand::Rests, Ending::Open)
        };
        ids.iter().map(of).collect::<Vec<Kid>>()
    };
    let mut parent = opened(&ids);
    step_at(&mut parent, &waiting(false), at(10));
    assert_eq!(
        step_at(&mut parent, &waiting(false), at(3609)),
        Change::Nothing
    );
    assert_eq!(
        step_at(&mut parent, &waiting(false), at(3610)),
        Change::Unjudged
    );
    assert_eq!(
        step_at(&mut parent, &waiting(false), at(9000)),
        Change::Nothing
    );
    // One that ever said something, or works meanwhile.
    let mut parent = opened(&ids);
    step_at(&mut parent, &waiting(true), at(10));
    assert_eq!(
        step_at(&mut parent, &waiting(true), at(3610)),
        Change::Nothing
    );
    let mut busy = waiting(false);
    busy[0].stand = Stand::Works;
    step_at(&mut parent, &waiting(false), at(4000));
    step_at(&mut parent, &busy, at(5000));
    step_at(&mut parent, &waiting(false), at(6000));
    assert_eq!(
        step_at(&mut parent, &waiting(false), at(9599)),
        Change::Nothing
    );
    assert_eq!(
        step_at(&mut parent, &waiting(false), at(9600)),
        Change::Unjudged
    );
}

/// Steps of ten seconds, in which what is due is asked for, as a turn does it.
fn asks(parent: &mut Parent, kids: &[Kid], from: u64, until: u64) -> Vec<u64> {
    let mut asked = Vec::new();
    for seconds in (from..until).step_by(10) {
        let now = at(seconds);
        let due = asked_at(parent, kids, MINIMUM);
        let news = has_come_to_rest(parent, kids);
        if due.is_some_and(|due| due <= now) {
            parent.asked = Some(now);
            parent.asks = if news { 1 } else { parent.asks + 1 };
            asked.push(seconds);
        } else if news && due.is_some() {
            continue;
        }
        step_at(parent, kids, now);
    }
    asked
}

#[test]
fn children_are_asked_for_when_one_comes_to_rest_and_then_ever_more_rarely() {
    let ids = ids(20);
    let mut parent = opened(&ids);
    let mut kids: Vec<Kid> = ids
        .iter()
        .map(|id| kid(id, Stand::Works, Ending::Open))
        .collect();
    assert_eq!(asks(&mut parent, &kids, 10, 3600), [0; 0]);
    kids[0].stand = Stand::Rests;
    let minutes = [0, 60, 180, 420, 900, 1860, 3060, 4260];
    let wanted = minutes.map(|seconds| 3600 + seconds);
    assert_eq!(asks(&mut parent, &kids, 3600, 8000), wanted);
    // All others do, one after the other: once each, and not twice a minute.
    let mut asked = Vec::new();
    for n in 1..20_usize {
        kids[n].stand = Stand::Rests;
        let from = 8000 + 20 * u64::try_from(n).unwrap();
        asked.extend(asks(&mut parent, &kids, from, from + 20));
    }
    assert!(asked.len() <= 8, "{asked:?}");
    assert!(
        asked.windows(2).all(|pair| pair[1] - pair[0] >= 60),
        "{asked:?}"
    );
    // At rest: one in twenty minutes, after the few at the beginning.
    let day = asks(&mut parent, &kids, 20_000, 106_400);
    assert!(day.len() <= 77, "{}", day.len());
}

#[test]
fn nobody_is_asked_for_what_is_known_or_does_not_matter() {
    let ids = ids(3);
    // All are done.
    let mut parent = opened(&ids);
    asks(&mut parent, &done(&ids), 10, 30);
    assert_eq!(asks(&mut parent, &done(&ids), 30, 9000), [0; 0]);
    // Fewer than the minimum.
    let one = [kid(&ids[0], Stand::Rests, Ending::Open)];
    assert_eq!(asks(&mut self::parent(), &one, 0, 9000), [0; 0]);
    // They are heard before they are seen for the first time.
    let two: Vec<Kid> = ids[..2]
        .iter()
        .map(|id| kid(id, Stand::Rests, Ending::Open))
        .collect();
    let mut fresh = self::parent();
    assert!(has_come_to_rest(&fresh, &two));
    assert_eq!(asked_at(&fresh, &two, MINIMUM), Some(Time(0)));
    assert_eq!(asks(&mut fresh, &done(&ids[..2]), 0, 9000), [0; 0]);
    assert_eq!(fresh.announced.len(), 2);
    // Who stopped or reads dead may have said something before.
    for ending in [Ending::Open, Ending::Stopped, Ending::Died] {
        let mut parent = opened(&ids[..2]);
        let mut kids = done(&ids[..2]);
        kids[0] = kid(&ids[0], Stand::Works, Ending::Open);
        asks(&mut parent, &kids, 10, 30);
        kids[0] = kid(&ids[0], Stand::Down, ending);
        assert_eq!(asks(&mut parent, &kids, 100, 200), [100]);
    }
}

/// Words that could be read as leave to merge or to go on.
const PERMITTING: [&str; 24] = [
    "merge",
    "continue",
    "proceed",
    "go",
    "next",
    "ready",
    "approve",
    "approved",
    "safe",
    "ok",
    "success",
    "complete",
    "completed",
    "all",
    "may",
    "can",
    "please",
    "now",
    "should",
    "accept",
    "ship",
    "deploy",
    "release",
    "yes",
];

#[test]
fn every_mixture_of_outcomes_is_counted_and_permits_nothing() {
    let endings = &Ending::ALL[1..];
    for mixture in 1..3_usize.pow(6) {
        let mut members = Vec::new();
        let mut counts = Vec::new();
        for (n, ending) in endings.iter().copied().enumerate() {
            let times = mixture / 3_usize.pow(u32::try_from(n).unwrap()) % 3;
            let member = Member {
                id: id(n),
                group: "work/app".to_owned(),
                ending,
                rests: true,
            };
            members.extend(vec![member; times]);
            if times > 0 {
                counts.push((ending, format!("{times} {}", outcome(ending))));
            }
        }
        let text = words(&members);
        let number = members.len();
        let noun = if number == 1 { "child" } else { "children" };
        let start = format!("{number} {noun} of group \"work/app\" ");
        let rest = text
            .strip_prefix(&start)
            .unwrap_or_else(|| panic!("{text}"));
        let (verb, rest) = rest.split_once(": ").unwrap();
        let (told, claimed) = rest.split_once(" (").unwrap_or((rest, ""));
        let wanted: Vec<&str> = counts.iter().map(|(_, count)| count.as_str()).collect();
        assert_eq!(told.split(", ").collect::<Vec<_>>(), wanted);
        let only_done = counts.iter().all(|(ending, _)| *ending == Ending::Done);
        assert_eq!(verb, if only_done { "finished" } else { "ended" }, "{text}");
        let said = |ending| counts.iter().any(|(counted, _)| *counted == ending);
        assert_eq!(
            !claimed.is_empty(),
            said(Ending::Done) || said(Ending::Failed)
        );
        for word in text.split(|c: char| !c.is_ascii_alphabetic()) {
            let word = word.to_lowercase();
            assert!(!PERMITTING.contains(&word.as_str()), "{word} in {text}");
        }
        assert!(text.len() < 400 && text.is_ascii(), "{text}");
    }
}

#[test]
fn a_group_is_named_when_it_is_common_and_is_made_harmless() {
    let text = |groups: [&str; 2]| {
        let member = |group: &str| Member {
            id: id(1),
            group: group.to_owned(),
            ending: Ending::Done,
            rests: true,
        };
        words(&groups.map(member))
    };
    let told = " finished: 2 done (what they say themselves, not checked)";
    for (groups, named) in [
        (["work", "work"], " of group \"work\"".to_owned()),
        (["work", "play"], String::new()),
        (["", ""], String::new()),
        (
            ["a\u{1b}[2J\n❯ 1. \"Yes\"", "a\u{1b}[2J\n❯ 1. \"Yes\""],
            " of group \"a [2J 1. 'Yes'\"".to_owned(),
        ),
        (
            [&"x".repeat(500), &"x".repeat(500)],
            format!(" of group \"{}…\"", "x".repeat(60)),
        ),
    ] {
        assert_eq!(text(groups), format!("2 children{named}{told}"));
    }
}
