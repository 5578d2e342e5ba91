//! Screens for tests: simple ones without colours, and the recorded ones of the
//! real agent. Does not know what anybody makes of them.

use super::recording;

/// A screen whose composer is free, below this text.
pub fn free_composer(text: &str) -> String {
    composer(text, "", "  ? for shortcuts")
}

/// A half-written line in the composer. Without colours: to be told from a
/// suggestion by nobody.
pub fn draft(text: &str) -> String {
    composer("✻ Welcome back!", text, "")
}

/// The same in colours, as the agent draws what somebody has typed.
pub fn coloured_draft(text: &str) -> String {
    let cursor = "\x1b[7m \x1b[0m\x1b[39m\x1b[49m";
    composer("✻ Welcome back!", &format!("{text}{cursor}"), "")
}

/// A prompt that the agent suggests: all but the letter below the cursor dim.
pub fn suggestion(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    let shown = format!("\x1b[7m{first}\x1b[0;2m{rest}\x1b[0m\x1b[39m\x1b[49m");
    composer("✻ Welcome back!", &shown, "  ? for shortcuts")
}

/// The agent at work, its composer empty.
pub fn busy() -> String {
    let text = "● I will do that now.\n\n✶ Whirring… (4s · ↓ 42 tokens)";
    composer(text, "", "  esc to interrupt · ← for agents")
}

/// Shell mode: what is sent there is run.
pub fn shell_mode(text: &str) -> String {
    let screen = composer("✻ Welcome back!", text, "  ! for shell mode");
    screen.replace("\n❯\u{a0}", "\n!\u{a0}")
}

/// A permission dialog for a command, its first option highlighted.
pub fn dialog() -> String {
    let body = " Bash command\n\n   cargo test\n   Run the tests\n\n Do you want to proceed?\n \
                ❯ 1. Yes\n   2. Yes, and don't ask again\n   3. No\n\n Esc to cancel · Tab to amend\n";
    format!("● I will run the tests.\n\n{}\n{body}", rule())
}

/// A plan to be approved.
pub fn plan() -> String {
    let body = " Claude has written up a plan. Would you like to proceed?\n\n ❯ 1. Yes, and use auto \
                mode\n   2. Yes, manually approve edits\n\n ctrl+g to edit in Vim · ~/.claude/plans/a.md\n";
    format!("● Here is the plan.\n\n{}\n{body}", rule())
}

/// A question of the agent.
pub fn question() -> String {
    let body = " ☐ Database\n\nWhich database should it use?\n\n❯ 1. SQLite\n     One file\n  2. \
                PostgreSQL\n\nEnter to select · ↑/↓ to navigate · Esc to cancel\n";
    format!("● One question.\n\n{}\n{body}", rule())
}

/// The question whether this folder is trusted.
pub fn trust() -> String {
    let body = " Accessing workspace:\n\n /home/u/proj\n\n Quick safety check: Is this a project you \
                created or one you trust?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter \
                to confirm · Esc to cancel\n";
    format!("{}\n{body}", rule())
}

/// Nothing that anybody knows.
pub fn plain() -> String {
    "starting up\nplease wait\n".to_owned()
}

/// A screen of the real agent: `perm-bash-80x24` and so on.
pub fn recorded(name: &str) -> Vec<u8> {
    recording(&format!("screens/{name}.ansi"))
}

fn composer(text: &str, content: &str, foot: &str) -> String {
    let rule = rule();
    format!("{text}\n\n{rule}\n❯\u{a0}{content}\n{rule}\n{foot}\n")
}

fn rule() -> String {
    "─".repeat(80)
}
