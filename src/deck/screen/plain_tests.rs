//! Tests of the text for a triage program: its end, without escapes.

use super::*;

#[test]
fn a_screen_becomes_plain_text() {
    let screen = "\u{1b}[31mred\u{1b}[0m  \n\u{1b}]0;title\u{7}\ttab\r\n\n  ❯\u{a0}\u{8}x\n\n \n";
    assert_eq!(plain(screen), "red\n tab\n\n  ❯\u{a0}x\n");
    assert_eq!(plain(""), "");
    assert_eq!(plain("\n\u{1b}[0m\n"), "");
}

#[test]
fn only_the_last_lines_and_bytes_are_kept() {
    let many: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let text = plain(&many);
    assert_eq!(text.lines().count(), PLAIN_LINES);
    assert!(text.starts_with("line 800\n") && text.ends_with("line 999\n"));
    // Cut at a character's border, whatever it is made of.
    for wide in ["x", "é", "中", "🔒"] {
        let long = format!("{}\n", wide.repeat(2000)).repeat(100);
        let text = plain(&long);
        let least = PLAIN_BYTES - wide.len();
        assert!((least..=PLAIN_BYTES).contains(&text.len()), "{wide}");
        assert!(text.starts_with(wide) || text.starts_with('\n'), "{wide}");
        assert!(text.ends_with(&format!("{wide}\n")), "{wide}");
    }
}
