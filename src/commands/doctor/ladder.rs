//! What the user may add to the ladder: a triage program.
//!
//! This file does not know when a child is due for it.

use std::path::Path;

use super::case::Case;
use super::shell::{Ourselves, quoted};
use super::telling::is_sound;
use crate::commands::paper::Light;

const PROGRAM: &str = "TRIAGE_CMD";

/// Whether the triage program can be run.
pub fn checks(case: &mut Case) {
    const NAME: &str = "triage";
    let found = case.found;
    let value = case.value(PROGRAM);
    if value.is_empty() {
        return found.ok(NAME, format_args!("off, {PROGRAM} is not set"));
    }
    let program = Path::new(&value);
    let (name, shown) = (quoted(program), program.display());
    if !program.exists() {
        found.problem(
            NAME,
            format_args!("{PROGRAM}: {shown} is not there, so each call counts as extend"),
            format_args!("{Ourselves} print triage > {name} && chmod 700 {name}"),
        );
    } else if program.is_dir() {
        found.problem(
            NAME,
            format_args!("{PROGRAM}: {shown} is a folder, so each call counts as extend"),
            format_args!("{}", case.unset(PROGRAM)),
        );
    } else if is_sound(case, NAME, program, Light::Red) {
        found.ok(NAME, format_args!("on, through {shown}"));
    }
}
