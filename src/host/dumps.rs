//! A panic leaves no core behind: it would hold the environment, and with it a
//! bot's token. While all is well our memory can be read as that of any program:
//! `doctor` looks at the settings of one that runs.
//!
//! This file does not know the secrets.

/// From now on. Elsewhere than on Linux nothing is done.
pub fn none_after_a_panic() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            say(what);
            let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        }));
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    #[test]
    fn a_panic_forbids_cores() {
        none_after_a_panic();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
        assert!(std::panic::catch_unwind(|| panic!("as a test")).is_err());
        let behavior = dumpable_behavior().unwrap();
        // The other tests look at processes of their own kind.
        set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
        assert_eq!(behavior, DumpableBehavior::NotDumpable);
    }
}
