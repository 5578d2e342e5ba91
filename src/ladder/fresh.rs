//! Whether what a child said of its work is about its present task: agent-deck
//! keeps the last word for good (contract 5.5b, ladder 1.5).
//!
//! This file does not know what was said.

use std::time::Duration;

use crate::clock::Time;

/// Stamps of agent-deck are read in whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// Whether a word that was said at `over` is about what a child has done since
/// it was last seen to begin to run, or since it was made when it was never seen
/// to run.
pub fn is_fresh(over: Time, ran: Option<Time>, created: Option<Time>) -> bool {
    let begin = ran.or(created).unwrap_or_default();
    over.plus(SECOND) > begin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_fresh_until_the_child_begins_to_run_again() {
        let at = |seconds: u64| Time(1_000_000_000_000 + seconds * 1000);
        for (over, ran, created, fresh) in [
            (at(50), Some(at(40)), Some(at(0)), true),
            (at(40), Some(at(40)), Some(at(0)), true),
            (at(30), Some(at(40)), Some(at(0)), false),
            // A fraction of a second was dropped when it was read.
            (at(40), Some(Time(at(40).0 + 999)), None, true),
            (at(40), Some(at(41)), None, false),
            // Never seen to run: any time after it was made.
            (at(50), None, Some(at(0)), true),
            (at(0), None, Some(at(0)), true),
            (at(0), None, Some(at(60)), false),
            (at(0), None, None, true),
        ] {
            assert_eq!(is_fresh(over, ran, created), fresh, "{over:?} {ran:?}");
        }
    }
}
