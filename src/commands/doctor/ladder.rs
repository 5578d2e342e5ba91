//! What the user may add to the ladder: a triage program, and leave to stop
//! children that nothing wakes.
//!
//! This file does not know when a child is due for either.

use std::path::Path;

use super::case::Case;
use super::shell::{Ourselves, quoted};
use super::telling::is_sound;
use crate::commands::paper::Light;
use crate::host::flags::AUTOSTOP;

const PROGRAM: &str = "TRIAGE_CMD";
const ENABLED: &str = "WAITING_PATROL_TERMINATE";

/// All of it.
pub fn checks(case: &Case) {
    triage(case);
    stop(case);
}

/// Whether the triage program can be run.
fn triage(case: &Case) {
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

/// Whether both opt-ins of the last rung are given, or none.
fn stop(case: &Case) {
    let found = case.found;
    let flags = case.desk.watch.flags.autostop.len();
    let enabled = case.value(ENABLED) == *"1";
    let folder = case.folder().join(AUTOSTOP);
    match (enabled, flags) {
        (false, 0) => found.ok(AUTOSTOP, format_args!("off, no child is ever stopped")),
        (true, 0) => found.warning(
            AUTOSTOP,
            format_args!(
                "{}=1 stops nobody: no child has a file in {}",
                ENABLED,
                folder.display()
            ),
            format_args!("{}", case.unset(ENABLED)),
        ),
        (false, flags) => found.warning(
            AUTOSTOP,
            format_args!(
                "{flags} children may be stopped by their files, and nobody is: {} is not 1",
                ENABLED
            ),
            format_args!("{}", case.set(ENABLED, "1".as_ref())),
        ),
        (true, flags) => found.ok(
            AUTOSTOP,
            format_args!("on, for {flags} children that do not answer"),
        ),
    }
}
