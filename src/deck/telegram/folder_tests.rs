//! Folders as they are compared, and what a plugin needs.

use super::*;
use crate::scratch::Scratch;
use std::os::unix::fs::symlink;

#[test]
fn folders_are_compared_by_what_they_lead_to() {
    let home = Scratch::new();
    let real = home.folder("tg/bot");
    symlink("tg", home.join("link")).unwrap();
    symlink("nowhere", home.join("broken")).unwrap();
    let at = |name: &str| normalised(&home.join(name));
    for same in [
        "tg/bot",
        "tg/bot/",
        "tg//bot///",
        "tg/./bot",
        "link/bot",
        "link/../tg/bot",
        "tg/bot\r",
    ] {
        assert_eq!(at(same), real, "{same:?}");
    }
    for other in ["tg/bot2", "tg/bo", "tg", "bot", "tg/bot/x"] {
        assert_ne!(at(other), real, "{other:?}");
    }
    // As far as it exists, then word for word.
    assert_eq!(at("link/new/./x/"), home.join("tg/new/x"));
    assert_eq!(at("tg/new/../x"), home.join("tg/x"));
    assert_eq!(at("broken/x"), home.join("broken/x"));
    assert_eq!(normalised(Path::new("/")), Path::new("/"));
    assert_eq!(normalised(Path::new("/no-such-folder/..")), Path::new("/"));
    // A relative one is not ours to follow.
    for relative in ["", "tg/bot", "./tg/bot/", "\r"] {
        assert!(
            !normalised(Path::new(relative)).is_absolute(),
            "{relative:?}"
        );
    }
    assert_eq!(
        default_folder(Path::new("/home/u/.claude")),
        Path::new("/home/u/.claude/channels/telegram")
    );
}

#[test]
fn a_plugin_is_enabled_by_true_alone() {
    const OFFICIAL: &str = "telegram@claude-plugins-official";
    let home = Scratch::new();
    let enabled = |plugin: &str| plugin_enabled(home.path(), plugin);
    assert_eq!(enabled(OFFICIAL), Ok(false));
    for (value, want) in [
        ("{\"telegram@claude-plugins-official\": true}", true),
        ("{\"telegram@claude-plugins-official\": false}", false),
        ("{\"telegram@claude-plugins-official\": \"true\"}", false),
        ("{\"telegram@fork\": true}", false),
        ("{}", false),
        ("null", false),
        ("[true]", false),
    ] {
        home.write("settings.json", format!("{{\"enabledPlugins\": {value}}}"));
        assert_eq!(enabled(OFFICIAL), Ok(want), "{value}");
        let entry = format!("plugin:{OFFICIAL}");
        assert_eq!(enabled(&entry), Ok(want), "{value}");
    }
    home.write("settings.json", "[]");
    assert_eq!(enabled(OFFICIAL), Ok(false));
    home.write("settings.json", "{\n\"a\": 1,\n");
    let why = enabled(OFFICIAL).unwrap_err();
    assert!(why.contains("settings.json line 3: not JSON"), "{why}");
    let other = Scratch::new();
    other.folder("settings.json");
    assert!(plugin_enabled(other.path(), OFFICIAL).is_err());
}
