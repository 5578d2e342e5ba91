//! Every short sequence of events in a batch, counted again by a second counter
//! that is slow and stupid: it keeps all lists that ever came, and finds out from
//! the first one on what should have been told.
//!
//! `BATCH_DEPTH=7 cargo test --lib counted` goes deeper.

use super::*;
use crate::model::Profile;

const MINIMUM: usize = 2;

/// What the list says of one child; `None`: it lacks it.
type Seen = Option<(Stand, Ending)>;

const WORKS: Seen = Some((Stand::Works, Ending::Open));
const RESTS: Seen = Some((Stand::Rests, Ending::Open));
const DONE: Seen = Some((Stand::Rests, Ending::Done));
const DYING: Seen = Some((Stand::Down, Ending::Open));
const DIED: Seen = Some((Stand::Down, Ending::Died));

/// What one child may come to, and how much time may pass.
const TURNS: [Seen; 6] = [None, WORKS, RESTS, DONE, DYING, DIED];
const WAITS: [u64; 2] = [50, 130];

/// One list: when it came, and each child in it.
#[derive(Clone, Copy)]
struct List {
    at: u64,
    seen: [Seen; 3],
}

/// Whom the stupid counter would tell of at the last of these lists, and who
/// has been told of, or was over before.
fn recount(lists: &[List]) -> Option<Vec<usize>> {
    let mut past: Vec<usize> = Vec::new();
    let mut begin = None;
    let mut told = None;
    for (n, list) in lists.iter().enumerate() {
        told = None;
        let is_over = |seen: Seen| seen.is_some_and(|(_, ending)| ending != Ending::Open);
        let here = |list: &List, past: &[usize]| -> Vec<usize> {
            let new = (0..3).filter(|kid| list.seen[*kid].is_some() && !past.contains(kid));
            new.collect()
        };
        let kids = here(list, &past);
        let Some(first) = begin else {
            let alive = |kid: &usize| [WORKS, RESTS].contains(&list.seen[*kid]);
            if kids.iter().any(alive) {
                begin = Some(n);
            } else if kids.iter().all(|kid| is_over(list.seen[*kid])) {
                past.extend(kids);
            }
            continue;
        };
        // Nobody of those who were in it at the last list is left.
        let before = here(&lists[n - 1], &past);
        if !before.iter().any(|kid| kids.contains(kid)) {
            begin = None;
            continue;
        }
        // Quiet since the first list from which on all who are here now were
        // here, and whoever was here was over.
        let quiet = |past: &[usize], list: &List| {
            let there = here(list, past);
            let over = there.iter().all(|kid| is_over(list.seen[*kid]));
            over && kids.iter().all(|kid| there.contains(kid))
        };
        let lately = lists[first..=n].iter().rev();
        let since = lately.take_while(|list| quiet(&past, list)).last();
        if since.is_some_and(|since| list.at - since.at >= 120) {
            past.extend(&kids);
            begin = None;
            told = Some(kids).filter(|kids| kids.len() >= MINIMUM);
        }
    }
    told
}

struct Walk {
    ids: [SessionId; 3],
    kids: usize,
    told: usize,
    lists: usize,
}

impl Walk {
    /// The next list comes, and the two agree; then all that may follow.
    fn on(&mut self, parent: &Parent, lists: &mut Vec<List>, depth: usize) {
        let mut parent = parent.clone();
        let list = lists[lists.len() - 1];
        let told = self.step(&mut parent, &list);
        let wanted = recount(lists);
        let story = || -> Vec<(u64, [Seen; 3])> { lists.iter().map(|l| (l.at, l.seen)).collect() };
        assert_eq!(told, wanted, "{:?}", story());
        self.lists += 1;
        self.told += usize::from(told.is_some());
        if depth == 0 {
            return;
        }
        for kid in 0..self.kids {
            for turn in TURNS.into_iter().filter(|turn| *turn != list.seen[kid]) {
                let mut next = list;
                next.at += 5;
                next.seen[kid] = turn;
                lists.push(next);
                self.on(&parent, lists, depth - 1);
                lists.pop();
            }
        }
        for wait in WAITS {
            lists.push(List {
                at: list.at + wait,
                ..list
            });
            self.on(&parent, lists, depth - 1);
            lists.pop();
        }
    }

    /// Whom the machine tells of.
    fn step(&self, parent: &mut Parent, list: &List) -> Option<Vec<usize>> {
        let kid = |(n, seen): (usize, &Seen)| {
            let (stand, ending) = (*seen)?;
            Some(Kid {
                id: &self.ids[n],
                group: "work",
                stand,
                ending,
                said: false,
            })
        };
        let kids: Vec<Kid> = list.seen.iter().enumerate().filter_map(kid).collect();
        let before = (parent.announced.clone(), parent.members.clone());
        let round = Round {
            stays: &|_| false,
            minimum: MINIMUM,
            gap: None,
            now: Time(list.at * 1000),
        };
        let Change::Announce(_) = step(parent, &kids, &round) else {
            return None;
        };
        let fresh = &parent.announced[before.0.len()..];
        assert!(fresh.iter().all(|id| !before.0.contains(id)), "told twice");
        assert!(!before.1.is_empty() && parent.members.is_empty());
        let place = |id: &SessionId| self.ids.iter().position(|known| known == id);
        let mut told: Vec<usize> = fresh.iter().filter_map(place).collect();
        told.sort_unstable();
        Some(told)
    }
}

/// Walks from these children on; how many lists came, and how many were told.
fn walk(kids: usize, first: [Seen; 3], depth: usize) -> (usize, usize) {
    let ids = ["a-1", "b-1", "c-1"].map(|id| SessionId::parse(id).unwrap());
    let parent = Parent::new(
        &Profile::parse("p").unwrap(),
        &SessionId::parse("x-1").unwrap(),
        "conductor-x",
    );
    let mut walk = Walk {
        ids,
        kids,
        told: 0,
        lists: 0,
    };
    let first = List {
        at: 1000,
        seen: first,
    };
    walk.on(&parent, &mut vec![first], depth);
    (walk.lists, walk.told)
}

#[test]
fn every_short_sequence_is_told_as_a_stupid_counter_would_tell_it() {
    let more = std::env::var("BATCH_DEPTH").ok();
    let depth = more.and_then(|depth| depth.parse().ok()).unwrap_or(5);
    let mut all = 0;
    for (kids, first, less) in [
        (2, [WORKS, WORKS, None], 0),
        (2, [None, None, None], 1),
        (3, [WORKS, DONE, None], 1),
        (3, [WORKS, DONE, DIED], 1),
        (3, [DONE, DIED, None], 1),
    ] {
        let (lists, told) = walk(kids, first, depth - less);
        assert!(lists > 1000, "{lists}");
        all += told;
    }
    assert!(all > 100, "{all}");
}

/// What single sequences of that length do not reach: a batch after a batch.
#[test]
fn a_batch_after_a_batch_is_of_others() {
    let ids = ["a-1", "b-1", "c-1"].map(|id| SessionId::parse(id).unwrap());
    let mut parent = Parent::new(&Profile::parse("p").unwrap(), &ids[0], "conductor-x");
    let walk = Walk {
        ids,
        kids: 3,
        told: 0,
        lists: 0,
    };
    let mut lists: Vec<List> = Vec::new();
    let mut told = Vec::new();
    for (at, seen) in [
        (0, [WORKS, WORKS, None]),
        (10, [DONE, DIED, None]),
        (140, [DONE, DIED, None]),
        (200, [WORKS, DIED, WORKS]),
        (210, [DONE, WORKS, DONE]),
        (340, [DONE, RESTS, DONE]),
        (500, [DONE, DONE, DONE]),
    ] {
        let list = List { at, seen };
        lists.push(list);
        let now = walk.step(&mut parent, &list);
        assert_eq!(now, recount(&lists), "{at}");
        told.extend(now);
    }
    assert_eq!(told, [vec![0, 1]]);
    assert_eq!(parent.batch, 2);
    assert_eq!(parent.announced.len(), 3);
}
