//! Tests of `triage.rs`: every answer that is not one of three words, and whose
//! turn it is.

use super::*;

fn at(seconds: u64) -> Time {
    Time(2_000_000_000_000).plus(Duration::from_secs(seconds))
}

#[test]
fn three_words_are_understood() {
    for (output, advice) in [
        ("retry", Advice::Retry),
        ("RETRY\n", Advice::Retry),
        ("extend\n", Advice::Extend),
        ("\n \t\r\n  Extend  \r\nterminate", Advice::Extend),
        ("Terminate\nsince it loops", Advice::Terminate),
        ("terminate\n\u{fffd}", Advice::Terminate),
    ] {
        let answer = read(Some(0), output.as_bytes());
        assert_eq!((answer.advice, answer.fallback), (advice, None), "{output}");
    }
    assert_eq!(read(Some(0), b"retry\n\xff\xfe").advice, Advice::Retry);
}

#[test]
fn triage_strict_verdict() {
    for output in [
        "",
        "\n \n\t\n",
        "do not terminate",
        "terminate.",
        "\"terminate\"",
        "`retry`",
        "retry extend",
        "retry, please",
        "retryretry",
        "terminat",
        "terminated",
        "ok\nterminate",
        "Answer: terminate",
        "- terminate",
        "terminate\0",
        "\u{feff}terminate",
        "\u{a0}terminate",
        "ter\rminate",
        "terminat\u{435}",
        "\u{1b}[1mterminate\u{1b}[0m",
    ] {
        let answer = read(Some(0), output.as_bytes());
        assert_eq!(answer.advice, Advice::Extend, "{output:?}");
        assert!(answer.fallback.is_some(), "{output:?}");
    }
    assert!(read(Some(0), b"\xff\xfe").fallback.is_some());
    for word in WORDS {
        for code in [Some(1), Some(2), Some(127), Some(-1), None] {
            let answer = read(code, word.word().as_bytes());
            assert_eq!(answer.advice, Advice::Extend, "{code:?}");
            assert!(answer.fallback.is_some(), "{code:?}");
        }
    }
}

/// Each child's last triage is noted as it is in a turn: four of them, one call
/// a tick.
#[test]
fn triage_budget_rotates() {
    let mut last = [None; 4];
    let mut asked = Vec::new();
    for tick in 0..8 {
        let due = last.into_iter().enumerate();
        let child = next(due).unwrap();
        last[child] = Some(at(tick));
        asked.push(child);
    }
    assert_eq!(asked, [0, 1, 2, 3, 0, 1, 2, 3]);
    // A newcomer is next, and then whoever has waited longest.
    let due = [('a', Some(at(2))), ('b', None), ('c', Some(at(1)))];
    assert_eq!(next(due), Some('b'));
    assert_eq!(next([due[0], due[2]]), Some('c'));
    assert_eq!(next(Vec::<(char, Option<Time>)>::new()), None);
}
