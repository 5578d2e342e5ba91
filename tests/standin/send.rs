//! `session send`: what reaches the agent, what is answered, and how long it
//! takes. The screen decides (`terminal.rs`), or the row's file `send_result`,
//! one line for one send, the last for all others:
//!
//! | line | what reaches the agent | answer |
//! | --- | --- | --- |
//! | (none) | what the screen makes of it | the screen's |
//! | `submitted` | text and Enter, whatever is on the screen | `submitted` |
//! | `unverified` | the same | `unverified`, exit 0 |
//! | `typed` | the same, and the screen shows the text | `typed`, exit 1 |
//! | `typed_not_submitted` | the same; the text stays in the input box | exit 1 |
//! | `no_evidence` | text and Enter 18 times, to no effect | exit 1 |
//! | `line_too_long`, `send_failed` | nothing | exit 1 |
//! | `db-error` | nothing | exit 1, an error without `delivery` |
//! | `not-running` | nothing | exit 1, as for a dead session |
//! | `nothing` | nothing | `submitted`, exit 0 |
//! | `slow:MS` | as without a line, half of that time after the call began | the screen's, after that time |
//!
//! A session of another tool has no screen that could be read: `unverified`.

use std::io;
use std::time::Duration;

use crate::Answer;
use crate::cli::{Call, Words};
use crate::deck;
use crate::json::Json;
use crate::session::Session;
use crate::terminal::{Reception, Screen};

/// How long the input box was waited for: free, and with a draft in it.
const HELD_MS: (u64, u64) = (2, 2161);

/// The message arrives, or does not.
pub fn send(call: &Call, mut row: Session, words: &Words) -> io::Result<Answer> {
    let message = match words.value("message-file") {
        Some("-") => io::read_to_string(io::stdin())?,
        Some(file) => std::fs::read_to_string(file)?,
        None => words.rest[1..].join(" "),
    };
    let message = message.trim_end_matches(['\r', '\n']);
    if !row.tmux_exists(call.deck) {
        return Ok(not_running(call, &row));
    }
    let wish = row.take_line("send_result", "")?;
    let slow = wish.strip_prefix("slow:").and_then(|ms| ms.parse().ok());
    let whole = slow.or_else(|| call.deck.number("send_ms")).unwrap_or(0);
    let half = Duration::from_millis(whole) / 2;
    call.deck.sleep(half);
    let mut row = Session::load(call.deck, &row.profile, &row.id)?;
    if let Some(opened) = row.bytes("at_send").map(<[u8]>::to_vec) {
        row.remove("at_send")?;
        row.show(opened)?;
    }
    let answer = match wish.as_str() {
        "db-error" => {
            let why = "failed to initialize storage: failed to open state database: \
                       statedb: wal mode: file is not a database (26)";
            call.failed("NOT_FOUND", why, 1, Vec::new())
        }
        "not-running" => not_running(call, &row),
        "line_too_long" | "send_failed" | "nothing" => {
            let word = if wish == "nothing" {
                "submitted"
            } else {
                &wish
            };
            answered(call, &row, message, word, None)
        }
        _ => {
            let taken = reception(&row, message, &wish);
            let draft = taken.draft.clone();
            let word = taken.delivery;
            arrives(&mut row, taken)?;
            answered(call, &row, message, word, draft)
        }
    };
    call.deck.sleep(half);
    Ok(answer)
}

fn not_running(call: &Call, row: &Session) -> Answer {
    let why = format!("session '{}' is not running", row.title());
    call.failed("INVALID_OPERATION", &why, 1, Vec::new())
}

/// What the message does: forced, or what the screen makes of it.
fn reception(row: &Session, message: &str, wish: &str) -> Reception {
    let bytes = row.screen();
    let screen = Screen::read(&bytes);
    let line = format!("❯ {message}");
    let simple = |delivery, screen| Reception {
        keys: format!("{message}\r").into_bytes(),
        delivery,
        draft: None,
        answered: None,
        ran: None,
        killed_tool: false,
        screen,
    };
    let below = || [&bytes, line.as_bytes(), b"\n"].concat();
    match wish {
        "submitted" => simple("submitted", screen.after(&line, "")),
        "unverified" => simple("unverified", below()),
        "typed" => simple("typed", below()),
        "typed_not_submitted" => simple("typed_not_submitted", screen.after("", message)),
        "no_evidence" => Reception {
            keys: format!("{message}{}", "\r".repeat(18)).into_bytes(),
            ..simple("no_evidence", bytes.clone())
        },
        _ if !is_claude(row) => simple("unverified", below()),
        _ => screen.take(message),
    }
}

fn is_claude(row: &Session) -> bool {
    row.text_or("tool", "claude") == "claude"
}

/// Writes down what happened; `typed` last, since tests wait for it.
fn arrives(row: &mut Session, mut taken: Reception) -> io::Result<()> {
    if let (Some(draft), false) = (&taken.draft, row.flag("draft_restored", true)) {
        taken.keys.truncate(taken.keys.len() - draft.len());
    }
    let screen = row.bytes("after_send").map(<[u8]>::to_vec);
    row.show(screen.unwrap_or(taken.screen))?;
    if let Some(option) = taken.answered {
        deck::add(&row.path("answered"), format!("{option}\n").as_bytes())?;
    }
    if let Some(command) = taken.ran {
        deck::add(&row.path("ran"), format!("{command}\n").as_bytes())?;
    }
    if taken.killed_tool {
        row.save("killed_tool", "")?;
    }
    deck::add(&row.path("typed"), &taken.keys)
}

/// The answer for a delivery word.
fn answered(
    call: &Call,
    row: &Session,
    message: &str,
    delivery: &str,
    draft: Option<String>,
) -> Answer {
    let submitted = delivery == "submitted";
    let mut pairs = vec![
        ("session_id", Json::text(row.id.as_str())),
        ("session_title", Json::text(row.title())),
        ("delivery", Json::text(delivery)),
        ("submitted", Json::Bool(submitted)),
    ];
    if is_claude(row) && !matches!(delivery, "line_too_long" | "send_failed") {
        let held = match draft {
            None => HELD_MS.0,
            Some(_) => HELD_MS.1,
        };
        let held = row.number("held_for_composer_ms").unwrap_or(held);
        pairs.push(("held_for_composer_ms", Json::Number(held.to_string())));
    }
    if let Some(draft) = draft {
        let key = match row.flag("draft_restored", true) {
            true => "draft_restored",
            false => "draft_restore_failed",
        };
        pairs.extend([("saved_draft", Json::text(draft)), (key, Json::Bool(true))]);
    }
    if submitted || delivery == "unverified" {
        pairs.push(("message", Json::text(message)));
        return call.done(pairs, "sent");
    }
    let word = match delivery {
        "send_failed" => "INVALID_OPERATION",
        _ => "DELIVERY_FAILED",
    };
    let why = complaint(delivery, &row.title(), message.len(), is_claude(row));
    call.failed(word, &why, 1, pairs)
}

/// What agent-deck was heard to say; of `send_failed` there is no recording.
fn complaint(delivery: &str, title: &str, length: usize, claude: bool) -> String {
    match delivery {
        "typed" => {
            let checks = if claude { 30 } else { 10 };
            format!(
                "message reached '{title}' but was never confirmed submitted: message reached \
                 the pane but submission was never confirmed after {checks} checks (issue \
                 #1793): the body is visible but the agent never began processing it. Treat \
                 this as NOT delivered — the submitting Enter may have been swallowed"
            )
        }
        "typed_not_submitted" => format!(
            "message typed but not submitted to '{title}': message typed but not submitted \
             after 30 verification checks (issue #1413): the composer still holds the message \
             despite bounded Enter retries. The recipient agent's input handler is not \
             accepting Enter"
        ),
        "line_too_long" => format!(
            "message too long for '{title}' to receive as one line: message not delivered: \
             payload line exceeds the pane's canonical-mode line buffer: longest payload line \
             is {length} bytes but /dev/pts/0 is in canonical mode with a 4096-byte line \
             buffer (terminator included), so the kernel would discard the overflow and the \
             submitting Enter with it; nothing was typed"
        ),
        "no_evidence" => format!(
            "message not delivered to '{title}': send dropped silently: no evidence of \
             delivery after 30 checks (issue #876). The agent never transitioned to 'active', \
             no composer/unsent-paste marker appeared, and the message body was not visible \
             in the pane. Verify the inner agent is reading from its TTY before retrying"
        ),
        _ => "failed to send message: exit status 1".to_owned(),
    }
}
