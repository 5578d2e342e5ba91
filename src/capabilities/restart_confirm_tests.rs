//! The last step of the judgement: two looks that have to agree, and the one
//! that needs no second.

use super::tests::{
    Case, NOW, ago, cause, finding, in_pane, is_dead, process, shown, stands, with,
};
use super::*;
use crate::model::NoAnswer;

#[test]
fn while_the_terminal_ui_runs_a_second_look_must_agree() {
    let ui = with(|c| c.table.push(process(300, 1, "agent-deck", "agent-deck")));
    let Finding::LookAgain(at, first) = finding(&ui) else {
        panic!("no second look")
    };
    assert_eq!(at, NOW.plus(UI_CONFIRM));
    let looked = |at: Time| Case {
        first: Some(FirstLook {
            at,
            ..first.clone()
        }),
        ..ui.clone()
    };
    assert!(matches!(
        finding(&looked(NOW.minus(Duration::from_millis(19_999)))),
        Finding::LookAgain(..)
    ));
    assert!(is_dead(&looked(ago(20))));
    // A list of that moment has the last word.
    let listed = |change: &dyn Fn(&mut Session)| {
        let mut case = looked(ago(20));
        change(case.listed.as_mut().unwrap());
        cause(&case)
    };
    assert_eq!(listed(&|row| row.archived = true), Some(Cause::Archived));
    assert_eq!(
        listed(&|row| row.status = Status::Stopped),
        Some(Cause::Stopped)
    );
    assert_eq!(
        listed(&|row| row.status = Status::Waiting),
        Some(Cause::NotDead)
    );
    let gone = Case {
        listed: Err(NoAnswer::NotFound),
        ..looked(ago(20))
    };
    assert_eq!(cause(&gone), Some(Cause::NoAnswer));
    // A first look of long ago is none.
    assert!(matches!(finding(&looked(ago(61))), Finding::LookAgain(..)));
}

#[test]
fn a_bare_shell_is_dead_in_two_looks() {
    let bare = || {
        let mut case = shown(|s| s.tool = "shell".to_owned());
        case.pane = Ok(stands(7));
        case.table.push(in_pane("bash"));
        case
    };
    assert!(matches!(finding(&bare()), Finding::LookAgain(..)));
    let second = |change: &dyn Fn(&mut Case)| {
        let mut case = bare();
        case.first = Some(FirstLook {
            at: ago(2),
            pane: stands(7),
        });
        change(&mut case);
        case
    };
    assert!(is_dead(&second(&|_| ())));
    let moved = second(&|c| c.pane = Ok(stands(8)));
    assert_eq!(cause(&moved), Some(Cause::TerminalStands));
    // Not a bare shell: it works, it is another machine's, it should be a shell.
    let child = second(&|c| c.table.push(process(201, 200, "make", "make")));
    let ssh = second(&|c| c.row.is_ssh = true);
    let sandbox = second(&|c| c.traces.sandboxed = true);
    let tool = second(&|c| c.shown.as_mut().unwrap().tool = "claude".to_owned());
    for case in [child, ssh, sandbox, tool] {
        assert_eq!(cause(&case), Some(Cause::MaybeAlive));
    }
}

#[test]
fn a_pane_that_stands_without_its_process_needs_a_witness_or_two_looks() {
    let standing = with(|c| c.pane = Ok(stands(7)));
    assert!(matches!(finding(&standing), Finding::LookAgain(..)));
    assert!(is_dead(&Case {
        witnessed: true,
        ..standing.clone()
    }));
    let first = |digest| {
        Some(FirstLook {
            at: ago(2),
            pane: stands(digest),
        })
    };
    assert!(is_dead(&Case {
        first: first(7),
        ..standing.clone()
    }));
    assert_eq!(
        cause(&Case {
            first: first(8),
            ..standing
        }),
        Some(Cause::TerminalStands)
    );
}

#[test]
fn when_the_end_was_witnessed_the_terminal_is_not_asked_for() {
    let unread = with(|c| {
        c.witnessed = true;
        c.pane = Err(NoAnswer::Late);
    });
    assert!(is_dead(&unread));
    // A banner over a terminal that may stand has to be looked at.
    let mut banner = shown(|s| s.substate = Some(Substate::Auth401));
    banner.witnessed = true;
    banner.pane = Ok(stands(1));
    assert_eq!(cause(&banner), Some(Cause::AuthHold));
    // Where its process is there again, nothing was witnessed.
    let again = Case {
        table: vec![process(100, 1, "tmux: server", "tmux"), in_pane("bash")],
        ..shown(|s| s.tool = "shell".to_owned())
    };
    let again = Case {
        witnessed: true,
        pane: Err(NoAnswer::Late),
        ..again
    };
    assert_eq!(cause(&again), Some(Cause::NoAnswer));
}
