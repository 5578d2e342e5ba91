//! `escalate.sh` and `curl`. Does not know agent-deck.

use std::io::{self, Read};

use crate::Answer;
use crate::deck::{self, Deck, now_ms, save};
use crate::traps;

/// Takes a message; the ledger has it. Exit 0 unless a trap says otherwise.
pub fn escalate(deck: &Deck) -> io::Result<Answer> {
    traps::answer(deck, "escalate.sh", None, |_| Ok(Answer::default()))
}

/// Writes down arguments and stdin; answers `{"ok":true}` unless a trap says
/// otherwise.
pub fn curl(deck: &Deck, args: &[String]) -> io::Result<Answer> {
    let folder = deck.file("curl");
    deck::folder(&folder)?;
    let n = format!("{}-{}", now_ms(), std::process::id());
    save(
        &folder.join(format!("{n}.args")),
        args.join("\n").as_bytes(),
    )?;
    let mut stdin = Vec::new();
    io::stdin().read_to_end(&mut stdin)?;
    save(&folder.join(format!("{n}.stdin")), &stdin)?;
    traps::answer(deck, "curl", None, |_| {
        Ok(Answer::printed(b"{\"ok\":true}\n".to_vec()))
    })
}
