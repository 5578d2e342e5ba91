//! The tail of a capture, line by line: text, and how the cells of a line are
//! drawn as far as a draft is told from a proposal by it.
//!
//! This file does not know what any line means.

/// Lines of a capture that are looked at, blank ones at its end included. The
/// highest screens recorded have 50 lines.
const LINES: usize = 300;
/// Bytes of text kept of one line, several times the widest terminal.
const WIDEST: usize = 8192;
/// Stands where a line could not be read to its end: it is text, so that such
/// a line is no rule and no empty input box.
const BROKEN: char = '\u{fffd}';

/// One line without its escapes.
#[derive(Debug, Default)]
pub struct Line {
    /// Its text without the blanks at its end. A no-break space is no blank.
    pub text: String,
    /// The column behind the last character that is neither dim nor reversed.
    pub bright: usize,
    /// Dim characters, blanks not counted.
    pub dim: usize,
    /// Reversed characters, blanks not counted.
    pub reversed: usize,
    /// The column at which reversed cells begin: the cursor. The cell itself
    /// may be cut off with the blanks at the end.
    pub cursor: Option<usize>,
}

impl Line {
    /// Whether nothing is to be seen on it.
    pub fn is_blank(&self) -> bool {
        self.text.chars().all(|c| c == ' ' || c == '\u{a0}')
    }
}

/// How the next cell is drawn.
#[derive(Default)]
struct Pen {
    dim: bool,
    reversed: bool,
}

/// The last lines of a capture that is not blank below them.
///
/// Attributes last from line to line. Those set above the lines looked at are
/// not known and count as off: what is dim is then taken for bright, which is
/// the side of silence.
#[inline(never)]
pub fn tail(content: &str) -> Vec<Line> {
    let mut start = 0;
    let mut breaks = 0;
    for (at, byte) in content.bytes().enumerate().rev() {
        breaks += usize::from(byte == b'\n');
        if breaks == LINES {
            start = at + 1;
            break;
        }
    }
    let mut pen = Pen::default();
    let mut lines = Vec::new();
    for line in content[start..].split('\n') {
        lines.push(read(line, &mut pen));
    }
    while lines.last().is_some_and(Line::is_blank) {
        lines.pop();
    }
    lines
}

fn read(raw: &str, pen: &mut Pen) -> Line {
    let mut line = Line::default();
    let mut column = 0;
    let mut chars = raw.chars();
    while let Some(mut c) = chars.next() {
        if c == '\u{1b}'
            && let Some(end) = escape(chars.as_str().as_bytes())
        {
            let (sequence, rest) = chars.as_str().split_at(end);
            pen.take(sequence);
            chars = rest.chars();
            if pen.reversed && line.cursor.is_none() {
                line.cursor = Some(column);
            }
            continue;
        }
        if c == '\u{1b}' || line.text.len() > WIDEST {
            c = BROKEN;
            chars = "".chars();
        }
        if c == '\t' {
            c = ' ';
        }
        if c < ' ' || ('\u{7f}'..='\u{9f}').contains(&c) {
            continue;
        }
        push(&mut line.text, c);
        column += 1;
        if c != ' ' {
            line.dim += usize::from(pen.dim);
            line.reversed += usize::from(pen.reversed);
            if !pen.dim && !pen.reversed {
                line.bright = column;
            }
        }
    }
    line.text.truncate(line.text.trim_end_matches(' ').len());
    line
}

/// Length of the sequence that follows an escape (ECMA-48, 5.3 to 5.6 and
/// 8.3); `None` when it is not complete. It ends on a character's border.
fn escape(bytes: &[u8]) -> Option<usize> {
    // Where the bytes that may be inside have ended.
    let after = |start: usize, inside: fn(u8) -> bool| {
        let mut end = start;
        while inside(*bytes.get(end)?) {
            end += 1;
        }
        Some(end)
    };
    let (end, last) = match bytes.first()? {
        b'[' => (after(1, |b| matches!(b, 0x20..=0x3f))?, 0x40),
        // Titles, links and other strings, up to BEL or ESC \.
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let end = after(1, |b| !matches!(b, 0x07 | 0x1b))?;
            // The end is its own escape.
            return Some(end + usize::from(bytes[end] == 0x07));
        }
        _ => (after(0, |b| matches!(b, 0x20..=0x2f))?, 0x30),
    };
    (last..=0x7e).contains(&bytes[end]).then_some(end + 1)
}

impl Pen {
    /// Follows one sequence, such as `[0;2m`.
    fn take(&mut self, sequence: &str) {
        let [b'[', codes @ .., b'm'] = sequence.as_bytes() else {
            return;
        };
        // Numbers to come that belong to a colour: `38;5;n`, `38;2;r;g;b`.
        let mut colour = 0;
        let mut begun = false;
        for code in codes.split(|b| *b == b';') {
            if begun {
                colour = match code {
                    b"5" => 1,
                    b"2" => 3,
                    _ => 0,
                };
                begun = false;
            } else if colour > 0 {
                colour -= 1;
            } else {
                match code {
                    b"" | b"0" => *self = Pen::default(),
                    b"2" => self.dim = true,
                    b"22" => self.dim = false,
                    b"7" => self.reversed = true,
                    b"27" => self.reversed = false,
                    b"38" | b"48" | b"58" => begun = true,
                    _ => {}
                }
            }
        }
    }
}

/// Adds a character. Not inlined: there would be three copies of 200 bytes.
#[inline(never)]
pub fn push(text: &mut String, c: char) {
    text.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(raw: &str) -> Line {
        tail(raw).pop().unwrap()
    }

    #[test]
    fn escapes_are_no_text() {
        for (raw, text) in [
            (
                "\x1b[38;5;244m─\x1b[39m ❯\u{a0}\x1b[7m \x1b[0m",
                "─ ❯\u{a0}",
            ),
            ("\x1b]8;;file:///a\x1b\\link\x1b]8;;\x07 end", "link end"),
            ("\x1b(Ba\x1b>b\x1bMc", "abc"),
            ("\x1bPq#1\x1b\\x\x1b^y\x07z", "xz"),
            ("a\r\0b\tc\x0e\u{9b}", "ab c"),
            ("e\u{301}\u{200d}中", "e\u{301}\u{200d}中"),
        ] {
            assert_eq!(one(raw).text, text, "{raw:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_text() {
        for raw in [
            "❯\u{a0}\x1b[38;5",
            "❯\u{a0}\x1b]0;draft",
            "❯\u{a0}\x1b",
            "❯\u{a0}\x1bé",
            "❯\u{a0}\x1b[1é",
            "❯\u{a0}\x1b(",
            "❯\u{a0}\x1b(é",
        ] {
            assert_eq!(one(raw).text, "❯\u{a0}\u{fffd}", "{raw:?}");
        }
    }

    #[test]
    fn cells_are_dim_bright_or_reversed() {
        let line = one("❯\u{a0}\x1b[7mr\x1b[0;2m\x1b[39m\x1b[49mun it\x1b[0m\x1b[39m");
        assert_eq!((line.bright, line.dim, line.reversed), (2, 4, 1));
        assert_eq!(line.cursor, Some(2));
        // 38;2;7;2;7 is a colour, 4:2 an underline, 22 and 27 take back.
        let line = one("\x1b[38;2;7;2;7;58;5;2m\x1b[4:2mab\x1b[2;7;22;27mc");
        assert_eq!((line.bright, line.dim, line.reversed), (3, 0, 0));
        assert_eq!(one("\x1b[2;mx").bright, 1);
        assert_eq!(one("❯\u{a0}  \x1b[7m").cursor, Some(4));
        assert_eq!(one("❯\u{a0}").cursor, None);
    }

    #[test]
    fn attributes_last_from_line_to_line() {
        let lines = tail("\x1b[2;7ma\nb\n\x1b[27mc\n\x1b[22md");
        let seen: Vec<_> = lines
            .iter()
            .map(|l| (l.dim, l.reversed, l.bright))
            .collect();
        assert_eq!(seen, [(1, 1, 0), (1, 1, 0), (1, 0, 0), (0, 0, 1)]);
    }

    #[test]
    fn blank_lines_at_the_end_and_endless_ones_are_cut() {
        assert_eq!(tail("a\n\n \x1b[0m\n\u{a0}\n").len(), 1);
        assert!(tail("").is_empty());
        assert!(tail("\n\n\x1b[0m\n").is_empty());
        assert_eq!(tail(&"x\n".repeat(1000)).len(), LINES - 1);
        let long = one(&"é".repeat(1_000_000));
        assert!(long.text.len() < WIDEST + 10 && long.text.ends_with(BROKEN));
    }
}
