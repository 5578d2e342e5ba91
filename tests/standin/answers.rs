//! The reading commands: version, profile list, list, show, output, children.
//! They change nothing but what a test has scripted for the next reading.

use std::io;

use crate::Answer;
use crate::cli::Call;
use crate::deck::Deck;
use crate::json::Json;
use crate::session::Session;

/// `archived_at` of a row that is not archived (contract 2.1).
const NEVER: &str = "0001-01-01T00:00:00Z";

/// `agent-deck version`.
pub fn version(deck: &Deck) -> Answer {
    let version = deck.text("version");
    let version = version.unwrap_or_else(|| "v1.14.0".to_owned());
    Answer {
        stdout: format!("Agent Deck {version}\n").into_bytes(),
        ..Answer::default()
    }
}

/// `profile list --json`.
pub fn profiles(call: &Call) -> io::Result<Answer> {
    let default = call.deck.text("default_profile");
    let default = default.unwrap_or_else(|| "default".to_owned());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(call.deck.file("profiles"))? {
        let folder = entry?.path();
        if folder.join("state.db").exists() || folder.join("sessions.json").exists() {
            let name = folder.file_name().unwrap_or_default();
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    let rows: Vec<Json> = names
        .iter()
        .map(|name| {
            Json::sorted(vec![
                ("name", Json::text(name.as_str())),
                ("is_default", Json::Bool(*name == default)),
                ("internal", Json::Bool(name.starts_with('_'))),
            ])
        })
        .collect();
    let total = Json::Number(rows.len().to_string());
    let rows = if rows.is_empty() {
        Json::Null
    } else {
        Json::List(rows)
    };
    Ok(call.done(
        vec![
            ("default_profile", Json::text(default)),
            ("profiles", rows),
            ("total", total),
        ],
        &names.join("\n"),
    ))
}

/// `list --json`.
pub fn list(call: &Call) -> io::Result<Answer> {
    let rows = Session::all(call.deck, &call.profile)?;
    if rows.is_empty() {
        // Plain text with exit 0 even in JSON mode; it repeats what was asked.
        let name = match call.profile_arg.as_str() {
            "" => &call.profile,
            asked => asked,
        };
        return Ok(Answer {
            stdout: format!("No sessions found in profile '{name}'.\n").into_bytes(),
            ..Answer::default()
        });
    }
    let titles: Vec<String> = rows.iter().map(Session::title).collect();
    let listed: io::Result<_> = rows.iter().map(|row| listed(call, row, &rows)).collect();
    Ok(call.printed(&Json::List(listed?), &titles.join("\n")))
}

/// One element of `list --json`: a struct, so the order is fixed.
fn listed(call: &Call, row: &Session, rows: &[Session]) -> io::Result<Json> {
    let parent = row.text_or("parent", "");
    let parent_path = rows.iter().find(|r| r.id == parent);
    let parent_path = parent_path.map(|r| r.text_or("path", "/home/u/proj"));
    let mut pairs = vec![("id", Json::text(row.id.as_str()))];
    some(&mut pairs, "parent_session_id", parent);
    some(
        &mut pairs,
        "parent_project_path",
        parent_path.unwrap_or_default(),
    );
    pairs.extend([
        ("title", Json::text(row.title())),
        ("path", Json::text(row.text_or("path", "/home/u/proj"))),
        ("group", Json::text(row.text_or("group", "work"))),
        ("tool", Json::text(row.text_or("tool", "claude"))),
    ]);
    some(&mut pairs, "command", row.text_or("command", "claude"));
    pairs.push(("status", Json::text(row.printed(call.deck))));
    some(&mut pairs, "substate", row.substate(call.deck));
    some(&mut pairs, "tmux_session", row.tmux_name());
    pairs.extend([
        ("profile", Json::text(call.profile.as_str())),
        ("created_at", Json::text(row.created_at())),
    ]);
    some(&mut pairs, "ssh_host", row.text_or("ssh_host", ""));
    let channels = row.channels();
    if !channels.is_empty() {
        pairs.push(("channels", Json::List(channels)));
    }
    if let Some(bytes) = row.bytes("extra_args") {
        pairs.push(("extra_args", Json::parse(bytes)?));
    }
    // No known version prints this one; should one ever do, it is believed.
    if row.has("is_conductor") {
        pairs.push(("is_conductor", Json::Bool(row.flag("is_conductor", true))));
    }
    pairs.extend([
        ("archived", Json::Bool(row.has("archived"))),
        ("archived_at", Json::text(row.text_or("archived", NEVER))),
    ]);
    Ok(Json::ordered(pairs))
}

/// `session show --json`: a map, so the keys are sorted.
pub fn show(call: &Call, row: &Session) -> io::Result<Answer> {
    let status = row.printed(call.deck);
    let agent = row.text_or("agent_session_id", "");
    let mut pairs = vec![
        ("id", Json::text(row.id.as_str())),
        ("title", Json::text(row.title())),
        ("profile", Json::text(call.profile_arg.as_str())),
        ("status", Json::text(status.as_str())),
        ("path", Json::text(row.text_or("path", "/home/u/proj"))),
        ("group", Json::text(row.text_or("group", "work"))),
        ("tool", Json::text(row.text_or("tool", "claude"))),
        ("parent_session_id", Json::text(row.text_or("parent", ""))),
        ("parent_project_path", Json::text("")),
        (
            "no_transition_notify",
            Json::Bool(row.flag("no_transition_notify", false)),
        ),
        ("title_locked", Json::Bool(row.flag("title_locked", true))),
        ("created_at", Json::text(row.created_at())),
        ("auto_name", Json::Bool(false)),
        ("wrapper", Json::text("")),
    ];
    some(&mut pairs, "command", row.text_or("command", "claude"));
    some(&mut pairs, "substate", row.substate(call.deck));
    some(&mut pairs, "tmux_session", row.tmux_name());
    // A tool that reads `shell` loses what only claude rows have (contract 6.10).
    if row.text_or("tool", "claude") == "claude" {
        let can_fork = row.flag("can_fork", !agent.is_empty());
        pairs.push(("claude_session_id", Json::text(agent)));
        pairs.push(("can_fork", Json::Bool(can_fork)));
        pairs.push(("can_restart", Json::Bool(true)));
        let channels = row.channels();
        if !channels.is_empty() {
            pairs.push(("channels", Json::List(channels)));
        }
        if row.has("link_disabled") {
            pairs.push(("plugin_channel_link_disabled", Json::Bool(true)));
        }
    }
    if let Some(bytes) = row.bytes("spawn_failure") {
        pairs.push(("spawn_failure", Json::parse(bytes)?));
    }
    // The first healthy look removes the hold (contract 6.6).
    if let (Some(bytes), "error") = (row.bytes("auth_hold"), status.as_str()) {
        pairs.push(("auth_hold", Json::parse(bytes)?));
    }
    Ok(call.printed(&Json::sorted(pairs), &row.title()))
}

/// `session output`, with `--pane` the screen. A reading of `panes` uses up a
/// line of it; nothing else of the reading commands changes anything.
pub fn output(call: &Call, mut row: Session, pane: bool) -> io::Result<Answer> {
    let held = row.has("auth_hold") || row.has("spawn_failure");
    let (role, content) = if !pane {
        // A transcript that cannot be found is an empty answer.
        ("assistant", Vec::new())
    } else if row.tmux_exists(call.deck) {
        // The session is listed as ever, only its screen cannot be had.
        if let Some(how) = row.text("pane_fails") {
            return Ok(no_pane(call, &how));
        }
        ("pane", row.next_screen()?)
    } else if held {
        let notice = row
            .bytes("notice")
            .unwrap_or("⚠  session failed to start\n".as_bytes());
        ("pane", notice.to_vec())
    } else {
        return Ok(no_pane(call, ""));
    };
    if call.quiet || !call.json {
        let mut stdout = content;
        if call.quiet {
            stdout.push(b'\n');
        }
        return Ok(Answer {
            stdout,
            ..Answer::default()
        });
    }
    Ok(call.done(
        vec![
            ("content", Json::Text(content)),
            ("role", Json::text(role)),
            ("session_id", Json::text(row.id.as_str())),
            ("session_title", Json::text(row.title())),
            ("tool", Json::text(row.text_or("tool", "claude"))),
        ],
        "",
    ))
}

/// A screen that cannot be read: tmux has no such session, or `hung`.
fn no_pane(call: &Call, how: &str) -> Answer {
    let cause = match how.trim() {
        "hung" => "signal: killed",
        _ => "exit status 1",
    };
    let why = format!("failed to capture pane: failed to capture history: {cause}");
    call.failed("INVALID_OPERATION", &why, 1, Vec::new())
}

/// `session children --json`.
pub fn children(call: &Call, row: &Session) -> io::Result<Answer> {
    let mut children = Vec::new();
    for child in Session::all(call.deck, &call.profile)? {
        if child.text_or("parent", "") != row.id {
            continue;
        }
        let mut pairs = vec![
            ("id", Json::text(child.id.as_str())),
            ("title", Json::text(child.title())),
            ("status", Json::text(child.printed(call.deck))),
        ];
        let done = child.text_or("done", "");
        let keys = ["done_status", "done_summary", "done_at"];
        for (key, value) in keys.into_iter().zip(done.lines()) {
            pairs.push((key, Json::text(value)));
        }
        children.push(Json::ordered(pairs));
    }
    let answer = Json::sorted(vec![
        ("children", Json::List(children)),
        ("parent", Json::text(row.id.as_str())),
    ]);
    Ok(call.printed(&answer, ""))
}

/// Adds a string unless it is empty (Go's `omitempty`).
fn some<'a>(pairs: &mut Vec<(&'a str, Json)>, key: &'a str, value: String) {
    if !value.is_empty() {
        pairs.push((key, Json::text(value)));
    }
}
