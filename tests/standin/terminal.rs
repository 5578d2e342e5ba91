//! The screen of a Claude session as keys find it: what `session send` does to
//! it, and what it looks like afterwards. A table of what was seen at the real
//! agent, screen by screen; a second opinion, so nothing of the watchdog's own
//! reading is used. Does not know rows or commands.

/// Ctrl+C.
const INTERRUPT: &[u8] = b"\x03";
/// Enter is pressed so often when nothing shows that the message has arrived.
const ENTERS: usize = 18;
/// A rule has at least so many columns.
const RULE: usize = 20;

/// Dialogs that are answered like all others, but after which agent-deck sees
/// no sign of its message.
const NO_EVIDENCE: &[&str] = &[
    "one you trust?",
    "use this API key?",
    "New MCP server found",
    "✔ Submit",
    "Select model",
    "Select login method",
];

/// What a message does to a screen.
pub struct Reception {
    /// The bytes that reach the agent.
    pub keys: Vec<u8>,
    /// The word for it.
    pub delivery: &'static str,
    /// What was taken for a draft and typed in again.
    pub draft: Option<String>,
    /// The option that was chosen.
    pub answered: Option<String>,
    /// The command that a shell got.
    pub ran: Option<String>,
    /// A running tool was ended.
    pub killed_tool: bool,
    /// The screen afterwards.
    pub screen: Vec<u8>,
}

/// What a screen is to somebody who types.
enum Kind {
    /// An input box, with what stands in it.
    Free,
    Draft(String),
    Suggestion(String),
    Queued(String),
    Shell(String),
    Search,
    /// No input box: the highlighted option, and whether it is left after it
    /// was chosen with a sign of the message.
    Dialog(String, bool),
    Rewind,
    Transcript,
    Filter,
    Other,
}

/// A screen taken apart.
pub struct Screen {
    raw: Vec<Vec<u8>>,
    plain: Vec<String>,
    kind: Kind,
    /// Upper and lower rule of the input box, or first line of a dialog.
    block: (usize, usize),
}

impl Screen {
    /// Reads one.
    pub fn read(bytes: &[u8]) -> Screen {
        let raw: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        let text = String::from_utf8_lossy(bytes);
        let mut style = Style::default();
        let cells: Vec<Vec<Cell>> = text.split('\n').map(|l| style.cells(l)).collect();
        let plain: Vec<String> = cells
            .iter()
            .map(|line| line.iter().map(|cell| cell.shown).collect())
            .collect();
        let (kind, block) = match input_box(&plain) {
            Some((top, bottom)) => (in_box(&cells, &plain, top, bottom), (top, bottom)),
            None => without_box(&plain),
        };
        Screen {
            raw,
            plain,
            kind,
            block,
        }
    }

    /// Types a message into it, as `session send` does.
    pub fn take(&self, message: &str) -> Reception {
        let mut taken = Reception {
            keys: keys(0, message, 1, ""),
            delivery: "submitted",
            draft: None,
            answered: None,
            ran: None,
            killed_tool: false,
            screen: self.raw.join(&b'\n'),
        };
        match &self.kind {
            Kind::Free | Kind::Transcript => {
                taken.screen = self.after(&format!("❯ {message}"), "");
            }
            Kind::Draft(text) | Kind::Suggestion(text) | Kind::Queued(text) => {
                let interrupts = 1 + usize::from(matches!(self.kind, Kind::Suggestion(_)));
                taken.keys = keys(interrupts, message, 1, text);
                taken.killed_tool = matches!(self.kind, Kind::Queued(_));
                taken.screen = self.after(&format!("❯ {message}"), text);
                taken.draft = Some(text.clone());
            }
            Kind::Shell(text) => {
                let command = format!("{text}{message}");
                taken.screen = self.after(&format!("! {command}"), "");
                taken.ran = Some(command);
            }
            Kind::Dialog(option, evidence) => {
                taken.keys = keys(2, message, if *evidence { 1 } else { ENTERS }, option);
                taken.answered = Some(option.clone());
                taken.draft = Some(option.clone());
                if !evidence {
                    taken.delivery = "no_evidence";
                }
                if !self.has("✔ Submit") {
                    taken.screen = self.after("", option);
                }
            }
            Kind::Rewind | Kind::Search => {
                taken.delivery = "no_evidence";
                taken.keys = keys(0, message, ENTERS, "");
                let rewinds = matches!(self.kind, Kind::Rewind);
                taken.answered = rewinds.then(|| "(current)".to_owned());
                taken.screen = self.after("", "");
            }
            Kind::Filter => taken.delivery = "typed",
            Kind::Other => {
                taken.delivery = "no_evidence";
                taken.keys = keys(0, message, ENTERS, "");
            }
        }
        taken
    }

    /// The screen with a line more above an input box that holds this text.
    pub fn after(&self, echo: &str, draft: &str) -> Vec<u8> {
        let (top, bottom) = self.block;
        let colour = self.raw.iter().any(|line| line.contains(&0x1b));
        let dress = |plain: String, coloured: String| if colour { coloured } else { plain };
        let mut lines = self.raw[..top].to_vec();
        let mut add = |line: String| lines.push(line.into_bytes());
        if !echo.is_empty() {
            let shown = format!("\x1b[0m\x1b[38;5;239m\x1b[48;5;237m{echo}\x1b[0m");
            add(dress(echo.to_owned(), shown));
            add(String::new());
        }
        let widths = self.plain.iter().filter(|line| is_rule(line));
        let width = widths.map(|line| line.trim_end_matches(' ').chars().count());
        let rule = "─".repeat(width.max().unwrap_or(80));
        let grey = format!("\x1b[38;5;244m{rule}");
        let cursor = "\x1b[7m \x1b[0m\x1b[39m\x1b[49m";
        add(dress(rule.clone(), grey.clone()));
        add(dress(
            format!("❯\u{a0}{draft}"),
            format!("\x1b[39m❯\u{a0}{draft}{cursor}"),
        ));
        add(dress(rule, grey));
        let hint = if draft.is_empty() {
            "  ? for shortcuts"
        } else {
            ""
        };
        add(dress(hint.to_owned(), format!("\x1b[39m{hint}")));
        let foot = self.raw.iter().skip(bottom + 2);
        // Help and menus close, the note of a second line stays.
        let stays = matches!(self.kind, Kind::Draft(_) | Kind::Free) && foot.len() > 0;
        let closes = self.foot().filter(|line| !line.trim().is_empty()).count() > 2;
        if stays && !closes {
            lines.extend(foot.cloned());
        } else {
            lines.push(Vec::new());
        }
        lines.join(&b'\n')
    }

    /// Whether this text stands in the dialog.
    fn has(&self, text: &str) -> bool {
        self.plain[self.block.0..]
            .iter()
            .any(|line| line.contains(text))
    }

    fn foot(&self) -> impl Iterator<Item = &String> {
        self.plain.iter().skip(self.block.1 + 1)
    }
}

/// The bytes of one send.
fn keys(interrupts: usize, message: &str, enters: usize, draft: &str) -> Vec<u8> {
    let mut bytes = INTERRUPT.repeat(interrupts);
    bytes.extend_from_slice(message.as_bytes());
    bytes.extend(std::iter::repeat_n(b'\r', enters));
    bytes.extend_from_slice(draft.as_bytes());
    bytes
}

/// Upper and lower rule of the last input box: its mark is followed by a
/// no-break space, which tells it from old prompts and options.
fn input_box(plain: &[String]) -> Option<(usize, usize)> {
    let marked = |line: &String| line.starts_with("❯\u{a0}") || line.starts_with("!\u{a0}");
    let line = (1..plain.len())
        .rev()
        .find(|n| marked(&plain[*n]) && is_rule(&plain[n - 1]))?;
    let bottom = (line + 1..plain.len()).find(|n| is_rule(&plain[*n]))?;
    Some((line - 1, bottom))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim_end_matches(' ');
    line.chars().count() >= RULE && line.chars().all(|c| c == '─')
}

fn in_box(cells: &[Vec<Cell>], plain: &[String], top: usize, bottom: usize) -> Kind {
    let first = cells[top + 1].iter().skip(2);
    let more = cells[top + 2..bottom].iter().flatten();
    let ink: Vec<&Cell> = first.chain(more).filter(|c| !c.is_blank()).collect();
    let lines = plain[top + 1..bottom].iter().enumerate();
    let lines = lines.map(|(n, line)| match n {
        0 => line.chars().skip(2).collect::<String>(),
        _ => line.clone(),
    });
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    let text = lines.join(" ").trim().to_owned();
    if plain[top + 1].starts_with('!') {
        return Kind::Shell(text);
    }
    if plain[bottom..]
        .iter()
        .any(|l| l.contains("search prompts:"))
    {
        return Kind::Search;
    }
    // All but the letter below the cursor are dim in what is only suggested.
    let typed = ink.iter().any(|c| !c.dim && !c.reverse) || (ink.len() == 1 && !ink[0].dim);
    match (ink.is_empty(), typed) {
        (true, _) => Kind::Free,
        (false, true) => Kind::Draft(text),
        (false, false) if text.contains("queued messages") => Kind::Queued(text),
        (false, false) => Kind::Suggestion(text),
    }
}

fn without_box(plain: &[String]) -> (Kind, (usize, usize)) {
    let end = plain.len();
    let option = plain.iter().rposition(|line| option_of(line).is_some());
    let above = |line: usize| plain[..line].iter().rposition(|line| is_rule(line));
    if let Some(line) = option {
        let top = above(line).unwrap_or(line);
        let text = option_of(&plain[line]).unwrap_or_default();
        let silent = |word: &&str| plain[top..].iter().any(|line| line.contains(*word));
        let evidence = !NO_EVIDENCE.iter().any(silent);
        return (Kind::Dialog(text, evidence), (top, end));
    }
    let find = |word: &str| plain.iter().rposition(|line| line.contains(word));
    for (word, kind) in [
        ("❯ (current)", Kind::Rewind),
        ("Showing detailed transcript", Kind::Transcript),
        ("Type to filter", Kind::Filter),
    ] {
        if let Some(line) = find(word) {
            return (kind, (above(line).unwrap_or(line), end));
        }
    }
    (Kind::Other, (end, end))
}

/// The text of a highlighted option: `❯ 1. Yes`.
fn option_of(line: &str) -> Option<String> {
    let text = line.trim().strip_prefix("❯ ")?.trim();
    let (number, rest) = text.split_once(". ")?;
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    (is_number && !rest.is_empty()).then(|| text.to_owned())
}

/// One character of the screen.
struct Cell {
    shown: char,
    dim: bool,
    reverse: bool,
}

impl Cell {
    fn is_blank(&self) -> bool {
        self.shown.is_whitespace()
    }
}

/// Attributes that go on from line to line.
#[derive(Default)]
struct Style {
    dim: bool,
    reverse: bool,
}

impl Style {
    fn cells(&mut self, line: &str) -> Vec<Cell> {
        let mut cells = Vec::new();
        let mut left = line.chars();
        while let Some(shown) = left.next() {
            if shown != '\x1b' {
                cells.push(Cell {
                    shown,
                    dim: self.dim,
                    reverse: self.reverse,
                });
                continue;
            }
            let code: String = left.by_ref().take_while(|c| *c != 'm').collect();
            self.change(code.trim_start_matches('['));
        }
        cells
    }

    fn change(&mut self, code: &str) {
        let mut numbers = code.split(';');
        while let Some(number) = numbers.next() {
            match number {
                "" | "0" => *self = Style::default(),
                "2" => self.dim = true,
                "7" => self.reverse = true,
                "22" => self.dim = false,
                "27" => self.reverse = false,
                // A colour: of a table, or red, green and blue.
                "38" | "48" => {
                    let more = if numbers.next() == Some("5") { 1 } else { 3 };
                    numbers.by_ref().take(more).for_each(drop);
                }
                _ => {}
            }
        }
    }
}
