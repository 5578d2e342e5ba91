//! The acceptance table: every recorded screen of the real agent (Claude Code
//! 2.1.197 under agent-deck 1.14.0, tmux 3.3a), and what must be done there.
//! Does not know of screens that were not recorded.

use std::collections::BTreeSet;
use std::fs;

use super::read;
use crate::model::Silence::{self, *};

/// The folder of the screens.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/screens");

/// Name, why nothing is typed, whether a decision is seen.
#[rustfmt::skip]
pub const TABLE: [(&str, Option<Silence>, bool); 90] = [
    ("after-long-bg-120x40", None, false),
    ("after-send-apikey-120x40", Some(Draft), false),
    ("after-send-ask-120x40", Some(Draft), false),
    ("after-send-bash-mode-120x40", None, false),
    ("after-send-mcp-approval-120x40", Some(Draft), false),
    ("after-send-perm-bash-120x40", Some(Draft), false),
    ("after-send-perm-bash-second-120x40", Some(Draft), false),
    ("after-send-plan-approval-120x40", Some(Draft), false),
    ("after-send-trust-120x40", Some(Draft), false),
    ("after-send-work-queued-120x40", Some(Draft), false),
    ("answer-ctrl-z-120x40", Some(NoComposer), false),
    ("answer-esc-120x40", Some(Interrupted), false),
    ("apikey-confirm-120x40", Some(Dialog), true),
    ("ask-120x40", Some(Dialog), true),
    ("ask-200x50", Some(Dialog), true),
    ("ask-60x40", Some(Dialog), true),
    ("ask-80x24", Some(Dialog), true),
    ("ask-multi-120x40", Some(Dialog), true),
    ("at-menu-120x40", Some(Menu), false),
    ("bash-mode-120x40", Some(ShellMode), false),
    ("draft-120x40", Some(Draft), false),
    ("draft-60x40", Some(Draft), false),
    ("draft-80x24", Some(Draft), false),
    ("draft-after-turn-120x40", Some(Draft), false),
    ("draft-multiline-120x40", Some(Draft), false),
    ("draft-multiline-60x40", Some(Draft), false),
    ("err-401-120x40", Some(Busy), false),
    ("err-401-late-120x40", Some(Credentials), false),
    ("err-403-120x40", Some(Credentials), false),
    ("err-429-120x40", Some(Busy), false),
    ("err-429-late-120x40", Some(UsageLimit), false),
    ("err-529-120x40", None, false),
    ("err-credit-120x40", Some(Credentials), false),
    ("err-drop-120x40", None, false),
    ("err-dropall-late-120x40", None, false),
    ("err-limit-120x40", Some(UsageLimit), false),
    ("err-refused-120x40", Some(Busy), false),
    ("err-refused-late-120x40", None, false),
    ("first-run-no-network", Some(NoComposer), false),
    ("idle-accept-edits-120x40", None, false),
    ("idle-background-120x40", None, false),
    ("idle-fresh-120x40", None, false),
    ("idle-plan-mode-120x40", None, false),
    ("idle-suggestion-120x40", Some(Suggestion), false),
    ("idle-suggestion-80x24", Some(Suggestion), false),
    ("idle-turn-120x40", None, false),
    ("idle-turn-120x40.later", None, false),
    ("idle-turn-200x50", None, false),
    ("idle-turn-60x40", None, false),
    ("idle-turn-80x24", None, false),
    ("idle-turn-long-120x40", None, false),
    ("idle-turn-long-120x40.later", None, false),
    ("mcp-approval-120x40", Some(Dialog), true),
    ("mcp-approval-60x40", Some(Dialog), true),
    ("panel-config-120x40", Some(Dialog), true),
    ("panel-help-120x40", Some(Dialog), true),
    ("panel-history-120x40", Some(Search), false),
    ("panel-login-120x40", Some(Dialog), true),
    ("panel-model-120x40", Some(Dialog), true),
    ("panel-model-80x24", Some(Dialog), true),
    ("panel-resume-120x40", Some(Dialog), true),
    ("panel-rewind-120x40", Some(Dialog), true),
    ("panel-transcript-120x40", Some(NoComposer), false),
    ("perm-bash-120x40", Some(Dialog), true),
    ("perm-bash-200x50", Some(Dialog), true),
    ("perm-bash-60x40", Some(Dialog), true),
    ("perm-bash-80x24", Some(Dialog), true),
    ("perm-bash-rm-120x40", Some(Dialog), true),
    ("perm-bash-second-120x40", Some(Dialog), true),
    ("perm-edit-120x40", Some(Dialog), true),
    ("perm-edit-60x40", Some(Dialog), true),
    ("perm-edit-80x24", Some(Dialog), true),
    ("perm-fetch-120x40", Some(Dialog), true),
    ("perm-fetch-60x40", Some(Dialog), true),
    ("perm-mcp-120x40", Some(Dialog), true),
    ("perm-write-120x40", Some(Dialog), true),
    ("plan-approval-120x40", Some(Dialog), true),
    ("plan-approval-200x50", Some(Dialog), true),
    ("plan-approval-60x40", Some(Dialog), true),
    ("plan-approval-80x24", Some(Dialog), true),
    ("shortcuts-120x40", Some(Menu), false),
    ("slash-menu-120x40", Some(Menu), false),
    ("trust-120x40", Some(Dialog), true),
    ("trust-second-120x40", Some(Dialog), true),
    ("work-bash-120x40", Some(Busy), false),
    ("work-draft-120x40", Some(Draft), false),
    ("work-interrupted-120x40", Some(Interrupted), false),
    ("work-queued-120x40", Some(Queued), false),
    ("work-stream-120x40", Some(Busy), false),
    ("work-think-120x40", Some(Busy), false),
];

/// The bytes of a recorded screen.
pub fn screen(name: &str) -> String {
    fs::read_to_string(format!("{FOLDER}/{name}.ansi")).unwrap()
}

/// The `content` of a recorded answer.
pub fn answer(name: &str) -> String {
    let text = fs::read_to_string(format!("{FOLDER}/{name}.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["content"].as_str().unwrap().to_owned()
}

#[test]
fn every_recorded_screen_is_in_the_table() {
    let names: BTreeSet<String> = TABLE.iter().map(|row| row.0.to_owned()).collect();
    let files = fs::read_dir(FOLDER).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".ansi").map(str::to_owned)
    });
    assert_eq!(names, files.collect::<BTreeSet<_>>());
}

#[test]
fn each_recorded_screen_is_typed_into_or_not() {
    let mut wrong = Vec::new();
    for (name, silence, decision) in TABLE {
        let read = read(&screen(name));
        if (read.claude, read.decision) != (silence, decision) {
            wrong.push((name, read.claude, read.decision));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn answers_of_agent_deck_are_read_as_screens_are() {
    assert_eq!(read(&answer("output-pane-idle")).claude, None);
    let dialog = read(&answer("output-pane-perm"));
    assert_eq!((dialog.claude, dialog.decision), (Some(Dialog), true));
}

#[test]
fn a_claude_screen_forbids_as_much_under_another_tool() {
    for (name, silence, _) in TABLE {
        let other = read(&screen(name)).other;
        match silence {
            // The prompt of a shell; a suspended agent and a transcript show
            // no sign of anything.
            Some(NoComposer) if name == "first-run-no-network" => {
                assert_eq!(other, Some(ShellMode))
            }
            Some(NoComposer) => {}
            silence => assert_eq!(other, silence, "{name}"),
        }
    }
}

#[test]
fn shells_in_the_background_are_counted_in_the_footer() {
    for (name, _, _) in TABLE {
        let background = read(&screen(name)).background;
        assert_eq!(background, name == "idle-background-120x40", "{name}");
    }
}
