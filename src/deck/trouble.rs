//! Limits and trouble of the machine, recognised in another program's error,
//! warning and reason texts (DESIGN 3.2).
//!
//! Words inside ids, titles and paths do not count: a session may be called
//! "fix 429". This file does not know what follows from it.

use std::ops::Range;

use crate::model::SessionId;

/// A cause that is no fault of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A limit of the model's provider: rate, usage, credit, capacity.
    RateLimit,
    /// The machine: processes, terminals, memory, files, disk.
    Host,
}

/// Wordings of limits, in lower case with single blanks for `-` and `_`
/// (recordings, real-agent; what the agent's and the API's users report).
const LIMITS: [&str; 14] = [
    "rate limit",
    "ratelimit",
    "too many requests",
    "usage limit",
    "session limit",
    "weekly limit",
    "hour limit",
    "hit your limit",
    "overloaded",
    "out of credits",
    "out of extra usage",
    "credit balance is too low",
    "credit balance too low",
    "insufficient credits",
];

/// HTTP statuses of limits, where they stand as numbers of their own.
const LIMIT_NUMBERS: [&str; 2] = ["429", "529"];

/// Wordings of EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT and EROFS, and
/// of programs that could not fork or get a terminal because of them.
const MACHINE: [&str; 22] = [
    "cannot fork",
    "can't fork",
    "could not fork",
    "unable to fork",
    "failed to fork",
    "fork failed",
    "forkpty failed",
    "openpty failed",
    "failed to create new os thread",
    "resource temporarily unavailable",
    "cannot allocate memory",
    "out of memory",
    "too many open files",
    "no space left on device",
    "disk quota exceeded",
    "database or disk is full",
    "read only file system",
    "eagain",
    "enomem",
    "emfile",
    "enospc",
    "enxio",
];

/// ENXIO in words (Linux, macOS): of a terminal it means that there are no more.
const NO_DEVICE: [&str; 2] = ["no such device or address", "device not configured"];
/// What makes it a terminal.
const TERMINAL: [&str; 5] = ["terminal", "pty", "ptmx", "/dev/pts", "/dev/tty"];

/// Which trouble `text` speaks of, outside this session's id and title.
pub fn classify(text: &str, id: &SessionId, title: &str) -> Option<Trouble> {
    let lower = text.to_ascii_lowercase();
    let spaced: String = lower
        .chars()
        .map(|c| {
            if matches!(c, '-' | '_' | '\t' | '\r' | '\n') {
                ' '
            } else {
                c
            }
        })
        .collect();
    let hidden = hidden(text, id.as_str(), title);
    let counts = |at: usize, words: &str| {
        let end = at + words.len();
        !hidden
            .iter()
            .any(|range| range.start <= at && end <= range.end)
    };
    let says = |words: &&str| {
        spaced
            .match_indices(*words)
            .any(|(at, _)| begins_word(&spaced, at) && counts(at, words))
    };
    let names = |number: &&str| {
        lower
            .match_indices(*number)
            .any(|(at, _)| own_number(&lower, at, number) && counts(at, number))
    };
    if LIMITS.iter().any(&says) || LIMIT_NUMBERS.iter().any(&names) {
        return Some(Trouble::RateLimit);
    }
    let terminal = TERMINAL.iter().any(|word| lower.contains(word));
    let machine = MACHINE.iter().any(&says) || (terminal && NO_DEVICE.iter().any(&says));
    machine.then_some(Trouble::Host)
}

/// Where id, title and path-like words stand.
fn hidden(text: &str, id: &str, title: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for name in [id, title] {
        if !name.is_empty() {
            ranges.extend(text.match_indices(name).map(|(at, _)| at..at + name.len()));
        }
    }
    let between = |c: char| c.is_whitespace() || "'\"`()[]{}<>,;=".contains(c);
    let mut start = 0;
    for word in text.split(between) {
        if word.contains('/') {
            ranges.push(start..start + word.len());
        }
        // The separator behind the word may be longer than a byte.
        let end = start + word.len();
        start = end + text[end..].chars().next().map_or(0, char::len_utf8);
    }
    ranges
}

/// `corporate limit` is none.
fn begins_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric())
}

/// Whether the digits at `at` are a whole number and no part of a longer one,
/// of a word, an id, an issue number or a place in a file.
fn own_number(text: &str, at: usize, number: &str) -> bool {
    let (before, after) = (&text[..at], &text[at + number.len()..]);
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\');
    if before.ends_with(|c| joins(c) || matches!(c, '.' | '#' | '$')) || after.starts_with(joins) {
        return false;
    }
    // 1,429 and 429.5 and 429,000
    let mut rest = after.chars();
    let fraction =
        matches!(rest.next(), Some('.' | ',')) && rest.next().is_some_and(char::is_alphanumeric);
    let thousands = before
        .strip_suffix(',')
        .is_some_and(|b| b.ends_with(|c: char| c.is_ascii_digit()));
    // statedb.go:429 and 127.0.0.1:429
    let word = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let place = word.ends_with(':') && word.contains('.');
    !fraction && !thousands && !place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, title: &str) -> Option<Trouble> {
        classify(
            text,
            &SessionId::parse("1a2b3c4d-4290000429").unwrap(),
            title,
        )
    }

    #[test]
    fn limit_wordings() {
        for text in [
            "HTTP 429",
            "INVALID_OPERATION: failed to restart session: HTTP/1.1 429 Too Many Requests",
            "Rate Limit exceeded",
            "RATE-LIMITED, try later",
            "ratelimit",
            "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
            "{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}",
            "code:429",
            "status=429,",
            "API Error: Request rejected (429) · Number of request tokens has exceeded your limit",
            "API Error: Repeated 529 Overloaded errors. The API is at capacity",
            "error 529.",
            "This request would exceed your account's rate\nlimit. Please try again",
            "Claude usage limit reached. Your limit will reset at 3pm",
            "You've hit your session limit · resets 12am",
            "Weekly limit reached ∙ resets Mon 9am",
            "5-hour limit reached ∙ resets 3pm",
            "You've hit your limit · resets 3pm",
            "You're out of extra usage",
            "out of credits",
            "Your credit balance is too low to access the API",
            "Credit balance too low · Add funds: https://platform.claude.com/settings/billing",
        ] {
            assert_eq!(
                of(text, "conductor-ops"),
                Some(Trouble::RateLimit),
                "{text}"
            );
        }
    }

    #[test]
    fn trouble_of_the_machine() {
        for text in [
            "failed to restart session: fork/exec /usr/bin/tmux: resource temporarily unavailable",
            "fork/exec /usr/bin/tmux: cannot allocate memory",
            "create window failed: fork failed: Device not configured",
            "open /dev/ptmx: no such device or address",
            "could not open terminal: No such device or address",
            "bash: fork: retry: Resource temporarily unavailable",
            "tmux: cannot fork",
            "spawn claude EAGAIN",
            "pipe2: too many open files in system",
            "write state.db: no space left on device",
            "write state.db: Disk quota exceeded",
            "database or disk is full (13)",
            "open state.db: read-only file system",
            "runtime: failed to create new OS thread (have 9 already; errno=11)",
            "ENXIO",
        ] {
            assert_eq!(of(text, "conductor-ops"), Some(Trouble::Host), "{text}");
        }
    }

    #[test]
    fn numbers_and_words_inside_others_do_not_count() {
        for text in [
            "",
            "session '1a2b3c4d-4290000429' not found",
            "session 1a2b3c4d-429 not found",
            "exited almost immediately (after 429ms)",
            "1429 and 4290 and 1,429 and 429,000 and 429.5 and 0.429 and x429 and 429x",
            "see #429",
            "/home/u/proj/429 does not exist",
            "/home/u/rate-limit/overloaded does not exist",
            "proj/429/b is gone, and so is ./fix-429",
            "statedb.go:429: retry",
            "dial 127.0.0.1:429: refused",
            "the corporate limit and an unoverloaded thing",
            "address already in use",
            "no such device or address",
            "forkful of memory",
            "failed to save session state: database is locked (5) (SQLITE_BUSY)",
            "session is waiting and was started 3s ago (within 1m0s freshness window)",
        ] {
            assert_eq!(of(text, "conductor-ops"), None, "{text}");
        }
    }

    #[test]
    fn titles_do_not_count_and_hide_nothing_else() {
        for title in [
            "fix 429",
            "rate limit",
            "cannot fork",
            "a",
            "",
            "übung 429 …",
        ] {
            let text = format!("title '{title}' is held by multiple sessions");
            assert_eq!(of(&text, title), None, "{title}");
            let text = format!("title '{title}': HTTP 429 from the API");
            assert_eq!(of(&text, title), Some(Trouble::RateLimit), "{title}");
        }
        // A title that is a part of the wording does not hide it.
        assert_eq!(of("rate limit exceeded", "limit"), Some(Trouble::RateLimit));
        assert_eq!(of("HTTP 429", "4"), Some(Trouble::RateLimit));
    }

    #[test]
    fn odd_texts_are_no_panic() {
        for text in [
            "\u{a0}/\u{2028}x/é429é",
            "429é",
            "é429",
            "\u{130}429",
            "429\u{130}",
        ] {
            assert_eq!(of(text, "\u{a0}"), None, "{text}");
        }
    }
}
