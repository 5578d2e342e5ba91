//! What a watchdog holds in its hands between turns: the memory, the last good
//! lists, the looks that are planned.
//!
//! This file does not know what a turn does with it.

use std::time::Duration;

use crate::capabilities::cause::Cause;
use crate::capabilities::look::FirstLook;
use crate::capabilities::restart::turn_order;
use crate::clock::Time;
use crate::guard::{Limits, Surroundings};
use crate::model::{ById, Flags, NoticeScope, Profile, Session, SessionId, Sight};
use crate::state::{Life, State};
use crate::telling;

/// Looks after a hint while agent-deck still says that the session lives
/// (issue of the fast path: about 0.05, 0.1, 0.3, 1, 2 s).
const HINT_DISTANCES_MS: [u64; 5] = [50, 100, 300, 1000, 2000];
/// Looks at a session that reads dead and is left alone, in seconds: at first
/// every poll, then rarer, so that a standing refusal costs next to nothing.
const USUAL_DISTANCES: [u64; 5] = [5, 10, 20, 40, 60];

/// Cheap passes over the processes after a restart or a `SessionStart` record,
/// in milliseconds: the new agent is there after 0.3 to 2 s (contract 5.2).
const PASSES_MS: [u64; 5] = [300, 700, 1500, 3000, 6000];

/// More strangers than this are forgotten: nobody runs as many beside a deck.
const STRANGERS_MAX: usize = 256;

/// What a turn may know of the settings.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The settings that are limits.
    pub limits: Limits,
    /// `WAITING_PATROL_THRESHOLD_S`.
    pub threshold: Duration,
    /// `PARENT_NOTICE_SCOPE`.
    pub scope: NoticeScope,
    /// `BATCH_NOTICE_MIN_CHILDREN`; 0: batches are not announced.
    pub batch_min: u32,
    /// Whether `TRIAGE_CMD` is set.
    pub triage: bool,
    /// `SAFETY_POLL_S`.
    pub poll: Duration,
    /// The longest distance between two turns, where it is known: a daemon's
    /// while all is calm.
    pub pace: Option<Duration>,
    /// Decide and say, change nothing.
    pub dry_run: bool,
    /// Through which eyes this run looks.
    pub eyes: Life,
    /// Profiles that are to be watched; `all profiles` where they are not named.
    pub wanted: Vec<Profile>,
}

/// A watchdog between two turns.
#[derive(Debug)]
pub struct Watch {
    /// What must survive.
    pub state: State,
    /// What of it is on the disk.
    pub saved: State,
    /// It has been written at least once by this run.
    pub remembered: bool,
    /// When this run began its first turn.
    pub began: Option<Time>,
    /// Settings.
    pub rules: Rules,
    /// The user's flag files, as of this turn.
    pub flags: Flags,
    /// The last good list of each profile.
    pub decks: Vec<Deck>,
    /// Planned looks, at most one for each session.
    pub looks: Vec<Planned>,
    /// The machine's processes, as of the last cheap pass.
    pub sight: Sight,
    /// When that was.
    pub sighted: Time,
    /// Sessions with hook records that a list did not know.
    pub strangers: Vec<SessionId>,
    /// When to make the next cheap passes after a restart.
    pub passes: Vec<Time>,
    /// Readings of the panes of waiting children.
    pub rounds: Rounds,
    /// When pollers are looked for again.
    pub pollers_due: Time,
    /// The last complete turn of an earlier run.
    pub last_turn: Option<Time>,
}

/// What the patrol holds in its hands between turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Children that wait, with their last and next readings.
    pub readings: ById<Reading>,
    /// Parents for whom notices wait, with their last and next readings.
    pub parents: ById<Reading>,
    /// Panes that may still be read in this turn.
    pub reads_left: u32,
    /// Messages that may still be sent in this turn.
    pub sends_left: u32,
    /// Parents whose children may still be asked for in this turn.
    pub asks_left: u32,
    /// Children that are due for triage, and wait for their turn.
    pub triages: Vec<SessionId>,
    /// Triage programs that may still be started in this turn.
    pub triages_left: u32,
    /// One runs.
    pub triaging: bool,
}

/// When one pane was read, and is to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The last reading by this run.
    pub last: Time,
    /// The next one.
    pub due: Time,
}

/// The last good list of one profile.
#[derive(Clone, Debug)]
pub struct Deck {
    /// Which.
    pub profile: Profile,
    /// Its rows, in agent-deck's order.
    pub rows: Vec<Session>,
    /// When it was listed.
    pub listed: Time,
    /// Where the rows are, in the order of their ids.
    places: Vec<u32>,
}

impl Deck {
    /// A list that came at that moment.
    pub fn new(profile: &Profile, rows: Vec<Session>, listed: Time) -> Deck {
        let mut deck = Deck {
            profile: profile.clone(),
            rows,
            listed,
            places: Vec::new(),
        };
        for (at, row) in (0..).zip(&deck.rows) {
            let place = deck.place(&row.id).unwrap_or_else(|place| place);
            deck.places.insert(place, at);
        }
        deck
    }

    /// The row of that id.
    pub fn row(&self, id: &SessionId) -> Option<&Session> {
        let place = self.place(id).ok()?;
        self.rows.get(self.places[place] as usize)
    }

    /// Where its place is, or where it would be.
    fn place(&self, id: &SessionId) -> Result<usize, usize> {
        let rows = &self.rows;
        self.places
            .binary_search_by(|at| rows[*at as usize].id.cmp(id))
    }
}

/// A look that is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// At which session.
    pub id: SessionId,
    /// When.
    pub due: Time,
    /// A hint asked for it, not a list.
    pub hinted: bool,
    /// The end of its pane process was witnessed.
    pub witnessed: bool,
    /// Looks so far at these distances.
    pub step: usize,
    /// Why it was left alone the last time.
    pub cause: Option<Cause>,
    /// The first of two looks.
    pub first: Option<FirstLook>,
}

impl Watch {
    /// A watchdog that has not looked yet.
    pub fn new(state: State, rules: Rules) -> Watch {
        Watch {
            saved: state.clone(),
            state,
            remembered: rules.dry_run,
            began: None,
            rules,
            flags: Flags::default(),
            decks: Vec::new(),
            looks: Vec::new(),
            sight: Sight::Blind("not looked yet".to_owned()),
            sighted: Time(0),
            strangers: Vec::new(),
            passes: Vec::new(),
            rounds: Rounds::default(),
            pollers_due: Time(0),
            last_turn: None,
        }
    }

    /// What the guard has to know beside the state.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            flags: &self.flags,
            limits: self.rules.limits,
            remembered: self.remembered,
        }
    }

    /// The same beside a state in which a permit is paid for.
    pub fn to_permit(&mut self) -> (&mut State, Surroundings<'_>) {
        let around = Surroundings {
            flags: &self.flags,
            limits: self.rules.limits,
            remembered: self.remembered,
        };
        (&mut self.state, around)
    }

    /// From when on messages may go out. A run that has not written anything
    /// yet waits a minute: the next one would not know what this one has told,
    /// and a cron job on a full disk would tell it again each minute.
    pub fn tells_from(&self) -> Time {
        match self.began {
            Some(began) if !self.remembered => began.plus(telling::MESSAGE_SPACING),
            Some(_) | None => Time(0),
        }
    }

    /// The last good list of one profile.
    pub fn deck(&self, profile: &Profile) -> Option<&Deck> {
        self.decks.iter().find(|deck| deck.profile == *profile)
    }

    /// The rows of one profile in its last good list.
    pub fn rows(&self, profile: &Profile) -> &[Session] {
        self.deck(profile).map_or(&[], |deck| &deck.rows)
    }

    /// All rows of all profiles.
    pub fn all_rows(&self) -> impl Iterator<Item = &Session> {
        self.decks.iter().flat_map(|deck| &deck.rows)
    }

    /// The session's row in the last good list.
    pub fn row(&self, id: &SessionId) -> Option<&Session> {
        self.decks.iter().find_map(|deck| deck.row(id))
    }

    /// Takes a good list in.
    pub fn take(&mut self, deck: Deck) {
        self.decks.retain(|known| known.profile != deck.profile);
        self.decks.push(deck);
    }

    /// How old the last good list of a profile is.
    pub fn list_age(&self, profile: &Profile, now: Time) -> Duration {
        now.since(self.deck(profile).map_or(Time(0), |deck| deck.listed))
    }

    /// Whether another watched profile, the one that it is remembered in, lists
    /// a session too.
    pub fn belongs_elsewhere(&self, row: &Session) -> bool {
        let Some(memory) = self.state.sessions.get(&row.id) else {
            return false;
        };
        let there = self.deck(&memory.profile);
        memory.profile != row.profile && there.is_some_and(|deck| deck.row(&row.id).is_some())
    }

    /// The look that is planned at a session.
    pub fn planned(&self, id: &SessionId) -> Option<&Planned> {
        self.looks.iter().find(|planned| planned.id == *id)
    }

    /// The same, to be changed.
    pub fn planned_mut(&mut self, id: &SessionId) -> Option<&mut Planned> {
        self.looks.iter_mut().find(|planned| planned.id == *id)
    }

    /// Life was seen through these eyes since boot.
    pub fn life_seen(&self) -> bool {
        self.state.life.as_ref() == Some(&self.rules.eyes)
    }

    /// A list says that it reads dead: look, unless a look is planned already.
    /// What the guard held back is looked at as soon as it agrees: holds and
    /// failures may be taken away before their time.
    pub fn plan_listed(&mut self, id: &SessionId, guard_agrees: bool, now: Time) {
        let planned = self.plan(id, now);
        planned.hinted = false;
        if guard_agrees && planned.cause.is_none() && planned.first.is_none() {
            planned.due = planned.due.min(now);
        }
    }

    /// There is no usable list, of one profile or of any: what the last one
    /// planned is given up, what hints have planned stays.
    pub fn keep_hinted(&mut self, profile: Option<&Profile>) {
        let decks = &self.decks;
        let concerned = |id: &SessionId| {
            let mut decks = decks
                .iter()
                .filter(|d| profile.is_none_or(|p| d.profile == *p));
            decks.any(|deck| deck.row(id).is_some())
        };
        self.looks
            .retain(|planned| planned.hinted || !concerned(&planned.id));
    }

    /// A hint says that something happened to it: look now.
    pub fn plan_hinted(&mut self, id: &SessionId, witnessed: bool, now: Time) {
        let known = self.planned(id).is_some();
        let planned = self.plan(id, now);
        planned.hinted = planned.hinted || !known;
        planned.due = now;
        planned.step = 0;
        planned.witnessed |= witnessed;
    }

    fn plan(&mut self, id: &SessionId, now: Time) -> &mut Planned {
        let known = self.looks.iter().position(|planned| planned.id == *id);
        let at = known.unwrap_or_else(|| {
            self.looks.push(Planned {
                id: id.clone(),
                due: now,
                hinted: false,
                witnessed: false,
                step: 0,
                cause: None,
                first: None,
            });
            self.looks.len() - 1
        });
        &mut self.looks[at]
    }

    /// The session is well, or not for us: no look.
    pub fn unplan(&mut self, id: &SessionId) {
        self.looks.retain(|planned| planned.id != *id);
    }

    /// Looks at sessions that are not listed any more lead nowhere.
    pub fn drop_unlisted(&mut self) {
        let decks = &self.decks;
        let listed = |id: &SessionId| decks.iter().any(|deck| deck.row(id).is_some());
        self.looks.retain(|planned| listed(&planned.id));
    }

    /// The next look that is due, in fair order.
    pub fn due_look(&self, now: Time) -> Option<SessionId> {
        self.looks
            .iter()
            .filter(|planned| planned.due <= now)
            .filter_map(|planned| self.row(&planned.id))
            .min_by_key(|row| turn_order(row, &self.state))
            .map(|row| row.id.clone())
    }

    /// Plans the look after one that led to nothing: at `again` when that is
    /// known, else at the usual distances, which begin anew with a new cause.
    /// A hint that proved empty is followed up for a few seconds and dropped.
    pub fn plan_next(
        &mut self,
        id: &SessionId,
        cause: Option<Cause>,
        again: Option<Time>,
        now: Time,
    ) {
        let Some(planned) = self.planned_mut(id) else {
            return;
        };
        if planned.cause != cause {
            planned.step = 0;
        }
        planned.cause = cause;
        planned.first = None;
        let distance = if planned.hinted {
            HINT_DISTANCES_MS
                .get(planned.step)
                .copied()
                .map(Duration::from_millis)
        } else {
            let last = USUAL_DISTANCES.len() - 1;
            Some(Duration::from_secs(USUAL_DISTANCES[planned.step.min(last)]))
        };
        planned.step = planned.step.saturating_add(1);
        match again
            .filter(|at| *at > now)
            .or(distance.map(|d| now.plus(d)))
        {
            Some(due) => planned.due = due,
            None => self.unplan(id),
        }
    }

    /// Plans the cheap passes that find a new agent.
    pub fn plan_passes(&mut self, now: Time) {
        self.passes = PASSES_MS
            .iter()
            .map(|ms| now.plus(Duration::from_millis(*ms)))
            .collect();
    }

    /// Takes the user's flag files in. Where they have changed, whoever was held
    /// back may be asked.
    pub fn take_flags(&mut self, flags: Flags, now: Time) {
        if flags != self.flags {
            self.read_panes_again(now);
        }
        self.flags = flags;
    }

    /// Something may have happened on any screen: the panes of all who wait are
    /// due.
    pub fn read_panes_again(&mut self, now: Time) {
        for reading in self.rounds.readings.values_mut() {
            reading.due = reading.due.min(now);
        }
    }

    /// Something may be due of one who waits at that moment: its pane is read by
    /// then.
    pub fn read_pane_by(&mut self, id: &SessionId, at: Time) {
        if let Some(reading) = self.rounds.readings.get_mut(id) {
            reading.due = reading.due.min(at);
        }
    }

    /// A hook record of a session came that no list knows. Whether it is the
    /// first one: sessions of other profiles write records as well.
    pub fn is_news(&mut self, id: &SessionId) -> bool {
        if self.strangers.contains(id) {
            return false;
        }
        if self.strangers.len() >= STRANGERS_MAX {
            self.strangers.clear();
        }
        self.strangers.push(id.clone());
        true
    }

    /// When a look or a pass is due.
    pub fn next_look(&self) -> Option<Time> {
        self.looks
            .iter()
            .map(|p| p.due)
            .chain(self.passes.iter().copied())
            .min()
    }
}
