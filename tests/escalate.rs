//! `contrib/escalate.sh` against a Telegram endpoint on loopback: what arrives,
//! what the exit code says, and that the token is seen by nobody else.
//!
//! This file does not know the watchdog; the script is run as the watchdog runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};

const TOKEN: &str = "123456789:AAtest_secret-0123456789abcdefghij";
const SENT: &str = r#"{"ok":true,"result":{"message_id":1}}"#;

/// Programs of which a record is kept: all that the script uses.
const RECORDED: [&str; 9] = [
    "curl", "sed", "awk", "head", "tail", "tr", "od", "cat", "grep",
];

/// One request, as the endpoint got it.
struct Request {
    path: String,
    form: BTreeMap<String, String>,
}

/// A Telegram of our own: answers each connection with the next of its answers;
/// an empty answer hangs up.
struct Telegram {
    port: u16,
    requests: Receiver<Request>,
}

impl Telegram {
    fn answering(answers: &[(u16, &str)]) -> Telegram {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let answers: Vec<(u16, String)> = answers
            .iter()
            .map(|(code, body)| (*code, (*body).to_owned()))
            .collect();
        std::thread::spawn(move || {
            for (code, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&mut stream);
                // The script ends after the answer, so the request is there by then.
                sender.send(request).unwrap();
                if !body.is_empty() {
                    let length = body.len();
                    write!(
                        stream,
                        "HTTP/1.1 {code} Any\r\nContent-Type: application/json\r\n\
                         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                    )
                    .unwrap();
                }
            }
        });
        Telegram { port, requests }
    }

    fn request(&self) -> Request {
        self.requests.try_recv().expect("the script has asked")
    }
}

fn read_request(stream: &mut TcpStream) -> Request {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let length = lines
        .iter()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")
                .map(str::to_owned)
        })
        .map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let form = String::from_utf8(body)
        .unwrap()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect();
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    Request { path, form }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'%' => {
                let hex = std::str::from_utf8(&tail[..2]).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
                rest = &tail[2..];
            }
            b'+' => bytes.push(b' '),
            plain => bytes.push(plain),
        }
    }
    String::from_utf8(bytes).expect("whole characters")
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/escalate.sh")
}

fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Shells to try: the system's `sh`, and others where they are installed.
fn shells() -> Vec<Vec<&'static str>> {
    [
        vec!["sh"],
        vec!["dash"],
        vec!["bash"],
        vec!["busybox", "sh"],
    ]
    .into_iter()
    .filter(|shell| found(shell[0]).is_some())
    .collect()
}

/// Whether the script can be run here at all; says so when not.
fn can_run() -> bool {
    let missing: Vec<&str> = ["sh", "curl"]
        .into_iter()
        .filter(|program| found(program).is_none())
        .collect();
    if !missing.is_empty() {
        eprintln!(
            "SKIPPED: {} not installed, escalate.sh is not tested",
            missing.join(", ")
        );
    }
    missing.is_empty()
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("escalate-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder of wrappers: each notes its arguments and environment in the file
/// `$RECORD`, then becomes the real program. Made once, before anything is
/// started: a program that is still open for writing in a forked child cannot run.
fn wrappers() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = empty_folder("wrappers");
        let env = found("env").expect("env");
        for program in RECORDED {
            let Some(real) = found(program) else { continue };
            let text = format!(
                "#!/bin/sh\n{{ printf '%s\\n' '== {program}' \"$@\"; '{}'; }} >>\"$RECORD\"\nexec '{}' \"$@\"\n",
                env.display(),
                real.display()
            );
            let file = folder.join(program);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    })
}

/// One run of the script.
struct Ran {
    code: i32,
    out: String,
    err: String,
    /// Arguments and environments of all programs that the script has started.
    record: String,
}

/// Runs the script with nothing but `env` in its environment, beside HOME, PATH
/// and the address of the endpoint.
fn run(shell: &[&str], home: &Path, port: u16, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let record = home.join("record");
    let _ = fs::remove_file(&record);
    let path = std::env::join_paths(
        std::iter::once(wrappers().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .arg(script())
        .args(args)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("RECORD", &record)
        .env("TELEGRAM_API_BASE", format!("http://127.0.0.1:{port}"))
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        record: fs::read_to_string(&record).unwrap_or_default(),
    };
    for (place, text) in [
        ("output", &ran.out),
        ("stderr", &ran.err),
        ("arguments", &ran.record),
    ] {
        assert!(
            !text.contains("AAtest_secret"),
            "the token is in the {place}: {text}"
        );
    }
    ran
}

const BOTH: [(&str, &str); 2] = [
    ("TELEGRAM_BOT_TOKEN", TOKEN),
    ("TELEGRAM_ESCALATION_CHAT_ID", "-100123"),
];

#[test]
fn the_message_arrives_as_it_is_and_the_token_stays_hidden() {
    if !can_run() {
        return;
    }
    let home = empty_folder("intact");
    // A user's own settings of curl could print the address.
    fs::write(home.join(".curlrc"), "verbose\n").unwrap();
    let messages = [
        "conductor \"ops\" & 'web': 100% \\ back\\nslash $HOME `id` $(id)",
        "two\nlines\n\nand a\ttab\r\n",
        "\u{1f525} gr\u{fc}n \u{65e5}\u{672c} #tag a+b=c",
        "@everyone",
        "-n",
        "",
    ];
    for shell in shells() {
        let telegram = Telegram::answering(&[(200, SENT); 6]);
        for message in messages {
            let ran = run(&shell, &home, telegram.port, &BOTH, &["critical", message]);
            assert_eq!(
                (ran.code, ran.err.as_str()),
                (0, ""),
                "{shell:?} {message:?}"
            );
            assert!(
                ran.record.contains("== curl\n-q\n-K\n-\n"),
                "{}",
                ran.record
            );
            let request = telegram.request();
            assert_eq!(request.path, format!("/bot{TOKEN}/sendMessage"));
            assert_eq!(request.form["chat_id"], "-100123");
            assert_eq!(
                request.form["text"],
                format!("critical: {message}"),
                "{shell:?}"
            );
            assert_eq!(request.form.len(), 2, "no parse_mode, nothing else");
        }
    }
}

#[test]
fn every_answer_has_its_exit_code() {
    if !can_run() {
        return;
    }
    let home = empty_folder("codes");
    let refusal = |code: u16, text: &str| {
        format!(r#"{{"ok":false,"error_code":{code},"description":"{text}"}}"#)
    };
    let wait = r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 40","parameters":{"retry_after":40}}"#;
    let table: [(u16, &str, i32, &str); 10] = [
        (200, SENT, 0, ""),
        (
            200,
            "<html>log in to this network</html>",
            75,
            "not from Telegram",
        ),
        (429, wait, 75, "Too Many Requests"),
        (429, "{}", 75, "429"),
        (500, "oops", 75, "500"),
        (502, &refusal(502, "Bad Gateway"), 75, "Bad Gateway"),
        (401, &refusal(401, "Unauthorized"), 1, "Unauthorized"),
        (
            403,
            &refusal(403, "Forbidden: bot was blocked"),
            1,
            "Forbidden: bot was blocked",
        ),
        (
            400,
            &refusal(400, "Bad Request: chat not found"),
            1,
            "chat not found",
        ),
        (404, &refusal(404, "Not Found"), 1, "is the token right?"),
    ];
    for (http, body, code, words) in table {
        let telegram = Telegram::answering(&[(http, body)]);
        let ran = run(&["sh"], &home, telegram.port, &BOTH, &["warning", "hello"]);
        assert_eq!(ran.code, code, "{http} {body}: {}", ran.err);
        assert!(ran.err.contains(words), "{http} {body}: {}", ran.err);
        assert_eq!(
            ran.err.lines().count(),
            usize::from(code != 0),
            "{}",
            ran.err
        );
        let expected = if body == wait {
            "retry-after: 40\n"
        } else {
            ""
        };
        assert_eq!(ran.out, expected, "{http} {body}");
    }
    // An answer that repeats the token is not printed; `run` looks for it.
    let telegram = Telegram::answering(&[(404, &refusal(404, &format!("no bot{TOKEN}")))]);
    let ran = run(&["sh"], &home, telegram.port, &BOTH, &["info", "hello"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
}

#[test]
fn a_line_that_breaks_means_try_again() {
    if !can_run() {
        return;
    }
    let home = empty_folder("broken");
    let telegram = Telegram::answering(&[(200, "")]);
    let ran = run(&["sh"], &home, telegram.port, &BOTH, &["critical", "hello"]);
    assert_eq!(ran.code, 75, "{}", ran.err);
    assert!(ran.err.contains("curl failed with code 52"), "{}", ran.err);
}

#[test]
fn long_alert_is_cut_at_a_character() {
    if !can_run() {
        return;
    }
    let home = empty_folder("long");
    let units = |text: &str| text.encode_utf16().count();
    for shell in shells() {
        for (message, cut) in [
            ("\u{e9}".repeat(4090), false),
            ("\u{e9}".repeat(4091), true),
            ("\u{1f525}".repeat(2045), false),
            ("\u{1f525}".repeat(2046), true),
            (format!("x{}", "\u{1f525}\u{65e5}".repeat(9000)), true),
        ] {
            let telegram = Telegram::answering(&[(200, SENT)]);
            let ran = run(&shell, &home, telegram.port, &BOTH, &["info", &message]);
            assert_eq!(ran.code, 0, "{shell:?} {}", ran.err);
            let text = telegram.request().form["text"].clone();
            assert!(units(&text) <= 4096, "{shell:?}: {} units", units(&text));
            let whole = format!("info: {message}");
            match text.strip_suffix("\n[cut]") {
                Some(start) => {
                    assert!(cut && whole.starts_with(start), "{shell:?}");
                    assert!(units(&text) >= 4095, "{shell:?}: {} units", units(&text));
                }
                None => assert!(!cut && text == whole, "{shell:?}"),
            }
        }
    }
}

#[test]
fn the_token_is_read_from_the_env_file_and_nothing_there_is_run() {
    if !can_run() {
        return;
    }
    let home = empty_folder("envfile");
    let default = home.join(".claude/channels/telegram");
    let other = home.join("bot two");
    for folder in [&default, &other] {
        fs::create_dir_all(folder).unwrap();
    }
    let chat = ("TELEGRAM_ESCALATION_CHAT_ID", "@channel");
    for line in [
        format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"),
        format!(
            "# TELEGRAM_BOT_TOKEN=1:no\nA=b\nexport TELEGRAM_BOT_TOKEN=\"{TOKEN}\" # the bot\n"
        ),
        format!("TELEGRAM_BOT_TOKEN='{TOKEN}'\r\nTELEGRAM_BOT_TOKEN=2:second_is_not_taken\n"),
        format!("XTELEGRAM_BOT_TOKEN=1:no\n  TELEGRAM_BOT_TOKEN = {TOKEN} # the bot"),
    ] {
        for (folder, env) in [
            (&default, vec![chat]),
            (
                &other,
                vec![chat, ("TELEGRAM_STATE_DIR", other.to_str().unwrap())],
            ),
        ] {
            fs::write(folder.join(".env"), &line).unwrap();
            let telegram = Telegram::answering(&[(200, SENT)]);
            let ran = run(&["sh"], &home, telegram.port, &env, &["info", "hello"]);
            assert_eq!(ran.code, 0, "{line:?}: {}", ran.err);
            let request = telegram.request();
            assert_eq!(request.path, format!("/bot{TOKEN}/sendMessage"), "{line:?}");
            assert_eq!(request.form["chat_id"], "@channel");
            fs::remove_file(folder.join(".env")).unwrap();
        }
    }
    let trap = home.join("trap");
    fs::write(
        default.join(".env"),
        format!(
            "touch '{0}'\nTELEGRAM_BOT_TOKEN=$(touch '{0}')\n",
            trap.display()
        ),
    )
    .unwrap();
    let ran = run(&["sh"], &home, 9, &[chat], &["info", "hello"]);
    assert_eq!(ran.code, 78, "{}", ran.err);
    assert!(!trap.exists());
}

#[test]
fn what_is_not_set_up_is_named() {
    if !can_run() {
        return;
    }
    let home = empty_folder("setup");
    let with_token = |token| {
        [
            ("TELEGRAM_ESCALATION_CHAT_ID", "1"),
            ("TELEGRAM_BOT_TOKEN", token),
        ]
    };
    for (env, words) in [
        (
            vec![("TELEGRAM_BOT_TOKEN", TOKEN)],
            "TELEGRAM_ESCALATION_CHAT_ID",
        ),
        (vec![("TELEGRAM_ESCALATION_CHAT_ID", "1")], "no bot token"),
        (with_token("secret").to_vec(), "does not look like one"),
        (with_token("123456789").to_vec(), "does not look like one"),
        (
            with_token(":AAAAAAAAAAAA").to_vec(),
            "does not look like one",
        ),
        (
            with_token("12a4:AAAAAAAAAAAA").to_vec(),
            "does not look like one",
        ),
        (
            with_token("1:AAAA\"\nurl=\"x").to_vec(),
            "does not look like one",
        ),
    ] {
        let ran = run(&["sh"], &home, 9, &env, &["critical", "hello"]);
        assert_eq!(ran.code, 78, "{env:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{env:?}: {}", ran.err);
        assert!(!ran.record.contains("== curl"), "nothing is sent: {env:?}");
    }
    let mut env = BOTH.to_vec();
    env.push(("TELEGRAM_API_BASE", "http://x\"\noutput = \"y"));
    assert_eq!(run(&["sh"], &home, 9, &env, &["info", "hello"]).code, 78);
    assert_eq!(run(&["sh"], &home, 9, &BOTH, &["info"]).code, 64);

    let bare = empty_folder("bare-path");
    let sh = found("sh").unwrap();
    let env = [("PATH", bare.to_str().unwrap())];
    let ran = run(
        &[sh.to_str().unwrap()],
        &home,
        9,
        &[BOTH.as_slice(), &env].concat(),
        &["info", "x"],
    );
    assert_eq!(ran.code, 78, "{}", ran.err);
    assert!(ran.err.contains("curl is not installed"), "{}", ran.err);
}
