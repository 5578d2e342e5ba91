//! `session send --no-wait --json` (contract 5.5).
//!
//! This file does not know what was sent, nor what is on the screen.

use super::{Object, Raw, excerpt, text};
use crate::json::Value;
use crate::model::{Delivery, SessionId};

/// Reads what became of a message to `asked`.
pub fn send(raw: &Raw, asked: &SessionId) -> Delivery {
    let Some(object) = raw.first_object() else {
        return no_object(raw);
    };
    let other = text(&object, "session_id");
    if !other.is_empty() && other != asked.as_str() {
        return Delivery::LeftBehind(format!("session {} answered", excerpt(&other)));
    }
    if is_option(&text(&object, "saved_draft")) {
        return Delivery::Answered;
    }
    let error = excerpt(&text(&object, "error"));
    let says = |words: &str| format!("{words}: {error}");
    match text(&object, "delivery").as_str() {
        "submitted" | "unverified" if raw.code == Some(0) => Delivery::Delivered,
        "typed" | "typed_not_submitted" | "line_too_long" => {
            Delivery::LeftBehind(says(&text(&object, "delivery")))
        }
        "no_evidence" | "send_failed" => Delivery::NoEvidence(says(&text(&object, "delivery"))),
        "" if refused(raw, &object) => Delivery::Refused(error),
        word => Delivery::Unknown(format!("delivery {:?}", excerpt(word))),
    }
}

/// An error without a word of delivery comes before anything is typed, and so
/// does a message that was skipped.
fn refused(raw: &Raw, object: &Object) -> bool {
    let failed = raw.code != Some(0) && object.get("success") == Some(&Value::Bool(false));
    failed || object.get("skipped") == Some(&Value::Bool(true))
}

/// What is no answer at all.
fn no_object(raw: &Raw) -> Delivery {
    if raw.no_program() || raw.wrong_use() {
        return Delivery::Refused(raw.in_words());
    }
    Delivery::Unknown(raw.in_words())
}

/// `1. Yes`: what a dialog's chosen option looks like when it is taken for a
/// draft (contract 5.5).
fn is_option(draft: &str) -> bool {
    let draft = draft.trim_start_matches(['❯', '>', ' ', '\u{a0}']);
    let digits = draft.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && draft[digits..].starts_with(['.', ')'])
}
