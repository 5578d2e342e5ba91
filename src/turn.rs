//! One turn, the picture of the design on one page: observe, remember, look,
//! ask the guard, save the intent, act, save the outcome, tell.
//!
//! Restarts are served in the turn itself. Pollers and waiting children are
//! looked after between two turns, one small piece at a time, so that a hint is
//! served before the next piece.
//!
//! This file does not know how the world is reached, nor what any rule says.

use std::time::Duration;

use crate::act::act;
use crate::capabilities::cause::{Cause, Refusal};
use crate::capabilities::look::{Finding, Look};
use crate::capabilities::{eyes, restart};
use crate::clock::Time;
use crate::guard::{self, Purpose};
use crate::lasting;
use crate::model::{Level, NoAnswer, Profile, Scope, Session, SessionId};
use crate::outcome;
use crate::remember::{self, News};
use crate::saving::save;
use crate::settle::settle;
use crate::state::Episode;
use crate::telling::{self, Kind};
use crate::watch::{Deck, Watch};
use crate::world::World;
use crate::{
    batches, children, deaths, pace, parents, patrol, pollers, refusal, report, stop, triage,
};

/// A list older than this may not know of an archive or a stop (contract 5.6).
const FRESH: Duration = Duration::from_secs(1);

/// A whole turn.
pub fn turn<W: World>(watch: &mut Watch, world: &mut W) {
    let before = watch.state.episodes.clone();
    let now = world.now();
    watch.began.get_or_insert(now);
    if !watch.remembered {
        save(watch, world, true);
    }
    watch.take_flags(world.flags(), now);
    patrol::refill(watch);
    batches::refill(watch);
    triage::refill(watch);
    requests(watch, world);
    settle(watch, world);
    advised(watch, world);
    observe(watch, world);
    serve(watch, world);
    lasting::book(watch, world.now());
    finish(watch, world, &before, true);
}

/// Between turns: serves the looks that are due, one piece of what is due of the
/// other capabilities, and passes messages on.
pub fn between<W: World>(watch: &mut Watch, world: &mut W) {
    let before = watch.state.episodes.clone();
    let now = world.now();
    if watch.passes.iter().any(|at| *at <= now) {
        watch.passes.retain(|at| *at > now);
        pass(watch, world);
    }
    settle(watch, world);
    serve(watch, world);
    advised(watch, world);
    let served = pollers::step(watch, world) || deaths::step(watch, world);
    if !served && !parents::step(watch, world) {
        patrol::step(watch, world);
    }
    // What acts waits for the disk itself; a reading need not.
    finish(watch, world, &before, false);
}

/// Takes what triage says; who should be stopped is handed over.
fn advised<W: World>(watch: &mut Watch, world: &mut W) {
    if let Some(row) = triage::step(watch, world) {
        patrol::hand_over(watch, world, &row, true);
    }
}

/// When a piece of the other capabilities is due.
pub fn next_piece(watch: &Watch) -> Option<Time> {
    let pieces = [
        pollers::next_due(watch),
        deaths::next_due(watch),
        parents::next_due(watch),
        patrol::next_due(watch),
    ];
    pieces.into_iter().flatten().min()
}

/// A hook record came: a new agent may be there, or an old one may be gone.
/// True: only a list can tell, since none knows this session, or none as alive.
pub fn hook<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId) -> bool {
    let now = world.now();
    patrol::hook(watch, id, now);
    if parents::hook(watch, world, id, now) {
        return true;
    }
    let Some(row) = watch.row(id) else {
        return watch.is_news(id);
    };
    if !restart::is_critical(row, &watch.flags) {
        return false;
    }
    let (profile, alive) = (row.profile.clone(), row.status.is_alive());
    let Some(hook) = world.traces(&profile, id).hook else {
        return false;
    };
    match hook.event.as_str() {
        "SessionStart" => {
            watch.plan_passes(now);
            !alive
        }
        "SessionEnd" | "on_session_finalize" => {
            watch.plan_hinted(id, false, now);
            false
        }
        _ => false,
    }
}

/// The pane process of a session ended.
pub fn ended(watch: &mut Watch, id: &SessionId, now: Time) {
    watch.plan_hinted(id, true, now);
}

/// When something is due although nothing happens.
pub fn next_due(watch: &Watch) -> Option<Time> {
    // A dry run tells nobody.
    let message = telling::next_due(&watch.state).filter(|_| !watch.rules.dry_run);
    let message = message.map(|due| due.max(watch.tells_from()));
    let due = [watch.next_look(), message, next_piece(watch)];
    due.into_iter().flatten().min()
}

/// Carries out what the user asked for through files.
fn requests<W: World>(watch: &mut Watch, world: &mut W) {
    if watch.rules.dry_run {
        return;
    }
    let now = world.now();
    for id in watch.flags.clear.clone() {
        if let Err(why) = world.take_clear(&id) {
            let text = format!("the request clear/{id} cannot be taken away, so it waits: {why}");
            let (kind, level) = (Kind::Setup, Level::Warning);
            telling::keep(&mut watch.state, kind, id.as_str(), level, &text, now);
            continue;
        }
        let text = format!("the request clear/{id} is taken away");
        telling::resolve(&mut watch.state, Kind::Setup, id.as_str(), &text, now);
        let found = outcome::clear(&mut watch.state, &id);
        let sentence = if found {
            "its failures are forgotten, as asked by the clear file"
        } else {
            "asked for by a clear file, but nothing is known of it"
        };
        world.note(Level::Info, id.as_str(), sentence);
        // The request is gone: a crash must not forget it.
        save(watch, world, true);
    }
    match watch.flags.trouble.clone() {
        Some(why) => {
            let text = format!("nothing is restarted or asked, since anybody may be held: {why}");
            telling::keep(
                &mut watch.state,
                Kind::Setup,
                "hold",
                Level::Critical,
                &text,
                now,
            );
        }
        None => {
            let text = "the hold folder can be read again";
            telling::resolve(&mut watch.state, Kind::Setup, "hold", text, now);
        }
    }
}

/// Lists every profile and books what is seen.
fn observe<W: World>(watch: &mut Watch, world: &mut W) {
    if world.leaving() {
        return;
    }
    let now = world.now();
    let profiles = match world.profiles() {
        Ok(profiles) => profiles,
        Err(why) => {
            watch.keep_hinted(None);
            for profile in watch.rules.wanted.clone() {
                no_list(watch, world, &profile, &why, now);
            }
            return;
        }
    };
    watch.decks.retain(|deck| profiles.contains(&deck.profile));
    for profile in watch
        .state
        .profiles
        .iter()
        .map(|p| p.name.clone())
        .collect::<Vec<_>>()
    {
        if !profiles.contains(&profile) {
            remember::answers_again(&mut watch.state, &profile, now);
            let news = remember::unwatched(&mut watch.state, &profile, now);
            write_news(watch, world, news);
            let nobody = Deck::new(&profile, Vec::new(), now);
            children::book(watch, world, &nobody);
            let over = batches::book(watch, world, &nobody);
            batches::tell(watch, world, over);
        }
    }
    let begin = world.now();
    if !pace::is_calm(watch, world) {
        pace::search(watch, world);
    }
    for profile in profiles {
        if !world.leaving() {
            observe_one(watch, world, &profile, begin);
        }
    }
}

/// `begin` is when the observing began.
fn observe_one<W: World>(watch: &mut Watch, world: &mut W, profile: &Profile, begin: Time) {
    let answer = world.list(profile);
    let now = world.now();
    let rows = match answer {
        Ok(rows) => rows,
        Err(why) => {
            watch.keep_hinted(Some(profile));
            no_list(watch, world, profile, &why, now);
            return;
        }
    };
    let Some(rows) = believed(watch, profile, rows, now) else {
        world.detail(
            profile.as_str(),
            "an empty list where sessions were known: not believed yet",
        );
        watch.keep_hinted(Some(profile));
        return;
    };
    let deck = Deck::new(profile, rows, now);
    if watch.sighted < begin && !pace::is_noticed(watch, world, &deck) {
        // The list shows something that no hint revealed.
        pace::search(watch, world);
    }
    if children::after_gap(watch, profile, now) {
        pollers::after_gap(watch, profile);
    }
    let news = remember::list(&mut watch.state, &deck, &watch.flags, &watch.sight);
    write_news(watch, world, news);
    if deck.rows.iter().any(|row| row.status.is_alive()) && !watch.life_seen() {
        watch.state.life = Some(watch.rules.eyes.clone());
    }
    let stopped = stop::book(watch, world, &deck);
    children::book(watch, world, &deck);
    parents::book(watch, &deck);
    let over = batches::book(watch, world, &deck);
    plan(watch, deck);
    stop::tell(watch, world, &stopped);
    batches::tell(watch, world, over);
    world.detail(profile.as_str(), &report::tick(watch, profile));
    if watch.rules.dry_run {
        report::nothing_to_do(watch, world, profile);
    }
}

/// The rows of a list, as far as they belong to its profile; `None` for an empty
/// list where sessions were known, which is not believed yet.
pub fn believed(
    watch: &mut Watch,
    profile: &Profile,
    mut rows: Vec<Session>,
    now: Time,
) -> Option<Vec<Session>> {
    // A row that is on its way from one profile to another belongs to the one
    // that had it, as long as that one lists it too.
    rows.retain(|row| !watch.belongs_elsewhere(row));
    let empty = rows.is_empty() && !remember::believe_empty(&mut watch.state, profile, now);
    (!empty).then_some(rows)
}

fn no_list<W: World>(
    watch: &mut Watch,
    world: &mut W,
    profile: &Profile,
    why: &NoAnswer,
    now: Time,
) {
    for note in remember::no_list(&mut watch.state, profile, why, now) {
        world.note(note.level, &note.subject, &note.sentence);
    }
}

/// Plans looks at what reads dead; the others need none.
fn plan(watch: &mut Watch, deck: Deck) {
    let (profile, now) = (deck.profile.clone(), deck.listed);
    let dead: Vec<SessionId> = restart::wishes(&deck.rows, &watch.flags)
        .map(|row| row.id.clone())
        .collect();
    watch.take(deck);
    let sessions = &watch.state.sessions;
    let elsewhere = |id: &SessionId| sessions.get(id).is_some_and(|m| m.profile != profile);
    watch
        .looks
        .retain(|p| p.hinted || dead.contains(&p.id) || elsewhere(&p.id));
    for id in dead {
        let verdict = guard::verdict(&watch.state, &watch.surroundings(), &id, Purpose::Dead, now);
        watch.plan_listed(&id, verdict.agrees(), now);
    }
}

/// A cheap pass over the processes: finds new agents between two lists.
fn pass<W: World>(watch: &mut Watch, world: &mut W) {
    pace::search(watch, world);
    let now = world.now();
    let mut news = News::default();
    let rows: Vec<Session> = watch
        .all_rows()
        .filter(|row| restart::is_critical(row, &watch.flags) && !row.archived)
        .cloned()
        .collect();
    for row in &rows {
        remember::process_seen(&mut watch.state, row, &watch.sight, &mut news, now);
    }
    write_news(watch, world, news);
}

fn write_news<W: World>(watch: &mut Watch, world: &mut W, news: News) {
    for note in news.notes {
        world.note(note.level, &note.subject, &note.sentence);
    }
    for (id, line) in news.outcomes {
        report::outcome(watch, world, &id, &line);
    }
}

/// Serves the looks that are due, in fair order. Each one is moved on or
/// dropped, so this ends.
fn serve<W: World>(watch: &mut Watch, world: &mut W) {
    watch.drop_unlisted();
    while !world.leaving() {
        let now = world.now();
        let Some(id) = watch.due_look(now) else {
            return;
        };
        consider(watch, world, &id);
    }
}

/// Looks at one session, and acts if it is dead and the guard agrees.
fn consider<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId) {
    let critical = |row: &&Session| restart::is_critical(row, &watch.flags) && !row.archived;
    // A row that has moved to another profile since is not the one to look at.
    let known = watch.state.sessions.get(id).map(|memory| &memory.profile);
    let at_home = |row: &&Session| known.is_none_or(|profile| *profile == row.profile);
    let Some(row) = watch.row(id).filter(critical).filter(at_home).cloned() else {
        return watch.unplan(id);
    };
    let listed_dead = watch.planned(id).is_some_and(|p| !p.hinted);
    let now = world.now();
    if listed_dead {
        let verdict = guard::verdict(&watch.state, &watch.surroundings(), id, Purpose::Dead, now);
        if !verdict.agrees() {
            return refusal::by_guard(watch, world, &row, Purpose::Dead, &verdict);
        }
    }
    let finding = examine(watch, world, &row);
    let now = world.now();
    match finding {
        Finding::Dead(evidence) => act(watch, world, &row, Purpose::Dead, &evidence),
        Finding::LookAgain(at, first) => {
            if let Some(planned) = watch.planned_mut(id) {
                planned.first = Some(first);
                planned.due = at.max(now.plus(Duration::from_millis(1)));
            }
        }
        Finding::Leave(why) => refusal::left_alone(watch, world, &row, &why),
        Finding::AskShow | Finding::AskPane | Finding::AskList | Finding::AskProcesses => {
            watch.unplan(id);
        }
    }
}

/// The session's row in a list of this moment.
fn listed_now<W: World>(watch: &Watch, world: &mut W, row: &Session) -> Result<Session, NoAnswer> {
    let still =
        |listed: &Session| listed.id == row.id && restart::is_critical(listed, &watch.flags);
    let rows = world.list(&row.profile)?;
    rows.into_iter().find(still).ok_or(NoAnswer::NotFound)
}

/// Looks as far as it takes to judge.
pub fn examine<W: World>(watch: &Watch, world: &mut W, row: &Session) -> Finding {
    let now = world.now();
    let before = world.processes(Scope::All);
    let planned = watch.planned(&row.id);
    let Some(memory) = watch.state.sessions.get(&row.id) else {
        let sentence = "it was never listed".to_owned();
        return Finding::Leave(Refusal {
            cause: Cause::NotDead,
            sentence,
            again: None,
        });
    };
    let list_age = watch.list_age(&row.profile, now);
    let mut look = Look {
        row,
        memory,
        traces: world.traces(&row.profile, &row.id),
        blind: eyes::blind(&row.profile, watch.rows(&row.profile), &before),
        wrong_place: eyes::wrong_place(watch.rows(&row.profile), now.minus(list_age), &before),
        before: &before,
        after: None,
        shown: None,
        pane: None,
        listed: None,
        first: planned.and_then(|p| p.first.clone()),
        witnessed: planned.is_some_and(|p| p.witnessed),
        life_seen: watch.life_seen(),
        own: watch.state.running_pids().collect(),
        stale: planned.is_none_or(|p| !p.hinted) && list_age > FRESH,
    };
    loop {
        let finding = restart::judge(&look, world.now());
        // Asked to leave: no further command begins.
        if world.leaving() {
            return finding;
        }
        match finding {
            Finding::AskShow => look.shown = Some(world.show(&row.profile, &row.id)),
            Finding::AskPane => look.pane = Some(world.pane(&row.profile, &row.id)),
            Finding::AskList => look.listed = Some(listed_now(watch, world, row)),
            Finding::AskProcesses => {
                look.traces = world.traces(&row.profile, &row.id);
                look.after = Some(world.processes(Scope::All));
            }
            done @ (Finding::Dead(_) | Finding::LookAgain(..) | Finding::Leave(_)) => return done,
        }
    }
}

/// Passes messages on and saves what changed.
fn finish<W: World>(watch: &mut Watch, world: &mut W, before: &[Episode], durable: bool) {
    let now = world.now();
    if watch.rules.dry_run {
        return;
    }
    telling::remind(&mut watch.state, now);
    telling::write_deduplicated(before, &watch.state, world);
    if now >= watch.tells_from() {
        telling::deliver(&mut watch.state, world);
    }
    save(watch, world, durable);
}
