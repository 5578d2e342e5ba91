//! The settings of the ladder (ladder 1.2).
//!
//! This file does not know what they are used for.

use std::path::PathBuf;
use std::time::Duration;

use super::{Environment, Whole, absolute, set, whole};
use crate::model::NoticeScope;

/// The settings of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// `WAITING_PATROL_MAX_NUDGES`; 0: rung 1 is never left.
    pub max_nudges: u32,
    /// `PARENT_NOTICE_SCOPE`.
    pub scope: NoticeScope,
    /// `BATCH_NOTICE_MIN_CHILDREN`; 0: batches are not announced.
    pub batch_min: u32,
    /// `TRIAGE_CMD`.
    pub triage_cmd: Option<PathBuf>,
    /// `TRIAGE_TIMEOUT_S`.
    pub triage_timeout: Duration,
    /// `WAITING_PATROL_TERMINATE`.
    pub terminate: bool,
}

/// Nudges in an episode (ladder 1.2: 3).
pub const MAX_NUDGES: Whole = Whole {
    name: "WAITING_PATROL_MAX_NUDGES",
    unit: "",
    default: 3,
    least: 0,
    most: 24,
};
/// The smallest batch that is announced (ladder 1.2: 2).
pub const BATCH_MIN: Whole = Whole {
    name: "BATCH_NOTICE_MIN_CHILDREN",
    unit: "",
    default: 2,
    least: 0,
    most: 1000,
};
/// Seconds until a triage program is ended (ladder 1.2: 30).
pub const TRIAGE_TIMEOUT: Whole = Whole {
    name: "TRIAGE_TIMEOUT_S",
    unit: " of seconds",
    default: 30,
    least: 1,
    most: 300,
};
/// Whether the last rung may be climbed (ladder 1.2: 0).
pub const TERMINATE: Whole = Whole {
    name: "WAITING_PATROL_TERMINATE",
    unit: "",
    default: 0,
    least: 0,
    most: 1,
};

/// Whom notices may be typed to, and which it is by default (ladder 1.2).
pub const SCOPE: (&str, &str) = ("PARENT_NOTICE_SCOPE", "conductor");

impl Ladder {
    /// Reads them out of an environment.
    ///
    /// # Errors
    /// A sentence that names the variable, the value and what is allowed.
    pub(super) fn read(environment: Environment) -> Result<Ladder, String> {
        let small = |setting| whole(environment, setting).map(|n| u32::try_from(n).unwrap_or(0));
        let triage_cmd = set(environment, "TRIAGE_CMD");
        Ok(Ladder {
            max_nudges: small(&MAX_NUDGES)?,
            scope: scope(environment)?,
            batch_min: small(&BATCH_MIN)?,
            triage_cmd: triage_cmd
                .map(|path| absolute("TRIAGE_CMD", path))
                .transpose()?,
            triage_timeout: Duration::from_secs(whole(environment, &TRIAGE_TIMEOUT)?),
            terminate: whole(environment, &TERMINATE)? == 1,
        })
    }
}

fn scope(environment: Environment) -> Result<NoticeScope, String> {
    let (name, usual) = SCOPE;
    let value = set(environment, name).map(|value| value.to_string_lossy().into_owned());
    match value.as_deref().unwrap_or(usual) {
        "conductor" => Ok(NoticeScope::Conductor),
        "off" => Ok(NoticeScope::Off),
        "any" => Ok(NoticeScope::Any),
        other => Err(format!(
            "{name}={other:?} cannot be used: off, conductor or any"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn read(name: &str, value: &str) -> Result<Ladder, String> {
        Ladder::read(&|asked| (asked == name).then(|| OsString::from(value)))
    }

    #[test]
    fn unset_and_empty_mean_the_ladders_defaults() {
        for name in [
            "X",
            "WAITING_PATROL_MAX_NUDGES",
            "PARENT_NOTICE_SCOPE",
            "TRIAGE_CMD",
        ] {
            let ladder = read(name, "").unwrap();
            assert_eq!((ladder.max_nudges, ladder.batch_min), (3, 2));
            assert_eq!(ladder.scope, NoticeScope::Conductor);
            assert_eq!(ladder.triage_cmd, None);
            assert_eq!(ladder.triage_timeout, Duration::from_secs(30));
            assert!(!ladder.terminate);
        }
    }

    #[test]
    fn each_is_read() {
        assert_eq!(
            read("WAITING_PATROL_MAX_NUDGES", "0").unwrap().max_nudges,
            0
        );
        assert_eq!(read("BATCH_NOTICE_MIN_CHILDREN", "0").unwrap().batch_min, 0);
        assert_eq!(
            read("PARENT_NOTICE_SCOPE", "off").unwrap().scope,
            NoticeScope::Off
        );
        assert_eq!(
            read("PARENT_NOTICE_SCOPE", "any").unwrap().scope,
            NoticeScope::Any
        );
        let triage = read("TRIAGE_CMD", "/opt/triage").unwrap().triage_cmd;
        assert_eq!(triage, Some(PathBuf::from("/opt/triage")));
        let patience = read("TRIAGE_TIMEOUT_S", "300").unwrap().triage_timeout;
        assert_eq!(patience, Duration::from_secs(300));
        assert!(read("WAITING_PATROL_TERMINATE", "1").unwrap().terminate);
    }

    #[test]
    fn an_error_names_variable_value_and_range() {
        for (name, value, allowed) in [
            ("WAITING_PATROL_MAX_NUDGES", "25", "from 0 to 24"),
            ("WAITING_PATROL_MAX_NUDGES", "-1", "from 0 to 24"),
            ("PARENT_NOTICE_SCOPE", "all", "off, conductor or any"),
            ("BATCH_NOTICE_MIN_CHILDREN", "1001", "from 0 to 1000"),
            ("TRIAGE_CMD", "triage --fast", "absolute"),
            ("TRIAGE_TIMEOUT_S", "0", "seconds from 1 to 300"),
            ("WAITING_PATROL_TERMINATE", "yes", "from 0 to 1"),
        ] {
            let error = read(name, value).unwrap_err();
            for part in [name, value, allowed] {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        }
    }
}
