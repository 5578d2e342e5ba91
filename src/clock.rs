//! Two clocks and the stamps between them.
//!
//! Inside a run every stamp is a [`Time`]: milliseconds on a line that starts
//! at the wall clock of the moment the run began and then only follows the boot
//! clock. It never steps, and it goes on while the machine sleeps. What is
//! written down is wall time; [`Clock`] turns one into the other.
//!
//! This file does not know who asks, nor how long anything may take.

use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::json::{Json as _, Map, Value};
use crate::stored::{Restored, Stored, fill, stored};

/// A moment: milliseconds since 1970, as far as this run is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    // These three are called at every turn; a copy at each place weighs 3 KB.

    /// What has passed since `earlier`; nothing when that lies ahead.
    #[inline(never)]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` later.
    #[inline(never)]
    pub fn plus(self, span: Duration) -> Time {
        Time(self.0.saturating_add(millis(span)))
    }

    /// The moment `span` earlier, not before 1970.
    #[inline(never)]
    pub fn minus(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(millis(span)))
    }

    /// RFC 3339 in UTC with whole seconds, such as `2026-11-30T22:00:05Z`.
    pub fn rfc3339(self) -> String {
        let (year, month, day) = civil_from_days(self.0 / DAY_MS);
        let second = self.0 % DAY_MS / 1000;
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }

    /// Reads an RFC 3339 stamp with `Z` or a numeric offset; a fraction of a
    /// second is dropped. `None` for anything else and for years before 1970.
    pub fn parse_rfc3339(text: &str) -> Option<Time> {
        let bytes = text.as_bytes();
        let date_time = text.get(..19)?;
        let shape = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
        let t = shape(10, b'T') || shape(10, b't') || shape(10, b' ');
        if !(shape(4, b'-') && shape(7, b'-') && t && shape(13, b':') && shape(16, b':')) {
            return None;
        }
        let year = digits(date_time.get(0..4)?)?;
        let month = digits(date_time.get(5..7)?)?;
        let day = digits(date_time.get(8..10)?)?;
        let hour = digits(date_time.get(11..13)?)?;
        let minute = digits(date_time.get(14..16)?)?;
        let second = digits(date_time.get(17..19)?)?;
        let sane = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 61;
        if !sane {
            return None;
        }
        let offset = offset_seconds(text.get(19..)?)?;
        let local = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        let utc = i64::try_from(local).ok()?.checked_sub(offset)?;
        u64::try_from(utc)
            .ok()
            .map(|s| Time(s.saturating_mul(1000)))
    }
}

impl Time {
    /// As [`Time::parse_rfc3339`]; the seconds may be left out, as in
    /// `2026-11-30T22:00Z`.
    pub fn parse_stamp(text: &str) -> Option<Time> {
        let short = || {
            let (minutes, zone) = text.split_at_checked(16)?;
            Time::parse_rfc3339(&format!("{minutes}:00{zone}"))
        };
        Time::parse_rfc3339(text).or_else(short)
    }
}

impl Stored for Time {
    fn blank() -> Time {
        Time(0)
    }

    // As an object, so that stamps can be told from other numbers.
    fn store(&mut self) -> Value {
        let mut map = Map::new();
        map.insert("at".to_owned(), self.0.json());
        Value::Object(map)
    }

    fn restore(&mut self, value: &Value) -> Restored {
        fill(self, value.get("at").and_then(Value::as_u64).map(Time))
    }
}

/// Replaces every stamp in `value`.
pub fn each_stamp(value: &mut Value, change: &mut dyn FnMut(Time) -> Time) {
    match value {
        Value::Object(map) => {
            if map.len() == 1
                && let Some(at) = map.get("at").and_then(Value::as_u64)
            {
                map.insert("at".to_owned(), change(Time(at)).0.json());
                return;
            }
            map.values_mut().for_each(|inner| each_stamp(inner, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| each_stamp(inner, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

const DAY_MS: u64 = 86_400_000;

/// A span as it is typed: `45s`, `30m`, `8h`, `2d`, and such one behind another
/// (`1h30m`). `None` for anything else, and for nothing at all.
pub fn parse_span(text: &str) -> Option<Duration> {
    let (mut total, mut number) = (0u64, None::<u64>);
    for byte in text.bytes() {
        let unit = match byte {
            b'0'..=b'9' => {
                let so_far = number.unwrap_or(0).checked_mul(10)?;
                number = Some(so_far.checked_add(u64::from(byte - b'0'))?);
                continue;
            }
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            _ => return None,
        };
        total = total.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    (number.is_none() && total > 0).then(|| Duration::from_secs(total))
}

/// Whole milliseconds of a span.
pub fn millis(span: Duration) -> u64 {
    let whole = span.as_secs().saturating_mul(1000);
    whole.saturating_add(u64::from(span.subsec_millis()))
}

/// A span as a person says it: `45 s`, `4 min`, `3 h 20 min`, `2 d 3 h`.
pub fn spoken(span: Duration) -> String {
    let s = span.as_secs();
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{} min", s / 60),
        7200..172_800 if (s / 60).is_multiple_of(60) => format!("{} h", s / 3600),
        7200..172_800 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3600 % 24),
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// `Z`, `.123Z`, `+02:00`: seconds to take away to get UTC.
fn offset_seconds(rest: &str) -> Option<i64> {
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    if rest == "Z" || rest == "z" {
        return Some(0);
    }
    let (sign, rest) = match rest.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let seconds = digits(hours)? * 3600 + digits(minutes)? * 60;
    Some(sign * i64::try_from(seconds).ok()?)
}

/// Days since 1970 to a date of the Gregorian calendar (the usual era
/// arithmetic: 146 097 days in 400 years, years counted from March).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The way back; `year` is at least 1970.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let year_of_era = year % 400;
    let march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * march + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).saturating_sub(719_468)
}

stored! {
    /// The machine's clocks at one moment.
    pub struct Reading {
        /// Wall clock, milliseconds since 1970.
        pub wall: u64,
        /// Milliseconds since boot, asleep or not.
        pub boot: u64,
        /// Which boot that was; empty where the system does not say.
        pub boot_id: String,
    }
}

impl Reading {
    /// What really passed from `earlier` to here: by the boot clock when both
    /// are of one boot, else by the wall clock, and never less than nothing.
    pub fn elapsed_since(&self, earlier: &Reading) -> Duration {
        let ms = if !self.boot_id.is_empty() && self.boot_id == earlier.boot_id {
            self.boot.saturating_sub(earlier.boot)
        } else {
            self.wall.saturating_sub(earlier.wall)
        };
        Duration::from_millis(ms)
    }
}

/// The clock of one run.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Reading,
}

impl Clock {
    /// Begins a run now.
    pub fn start() -> Clock {
        let mut start = read(String::new());
        start.boot_id = boot_id();
        Clock { start }
    }

    /// The present on the line of this run.
    #[inline(never)]
    pub fn now(&self) -> Time {
        self.time_of(&read(String::new()))
    }

    /// Both clocks of the machine at this moment.
    pub fn reading(&self) -> Reading {
        read(self.start.boot_id.clone())
    }

    /// A wall time (a file's, another program's) on the line of this run. One
    /// that lies ahead stays ahead, so that it can be told from the present.
    pub fn from_wall(&self, wall: Time) -> Time {
        let reading = read(String::new());
        let (now, wall_now) = (self.time_of(&reading), Time(reading.wall));
        now.minus(wall_now.since(wall)).plus(wall.since(wall_now))
    }

    /// A system time on the line of this run, as [`Clock::from_wall`].
    pub fn from_system(&self, time: SystemTime) -> Time {
        self.from_wall(wall_of(time))
    }

    fn time_of(&self, reading: &Reading) -> Time {
        Time(
            self.start
                .wall
                .saturating_add(reading.boot.saturating_sub(self.start.boot)),
        )
    }
}

fn read(boot_id: String) -> Reading {
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    // Elsewhere (macOS) the monotonic clock goes on during sleep.
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(id);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Reading {
        wall: wall_of(SystemTime::now()).0,
        boot: seconds
            .saturating_mul(1000)
            .saturating_add(nanos / 1_000_000),
        boot_id,
    }
}

/// A file's time as wall time.
pub fn wall_of(time: SystemTime) -> Time {
    Time(millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
}

fn boot_id() -> String {
    let mut id = Vec::new();
    if let Ok(file) = File::open("/proc/sys/kernel/random/boot_id") {
        let _ = file.take(100).read_to_end(&mut id);
    }
    String::from_utf8_lossy(id.trim_ascii()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_they_are_typed() {
        for (text, seconds) in [
            ("45s", Some(45)),
            ("30m", Some(1800)),
            ("8h", Some(28_800)),
            ("1h30m", Some(5400)),
            ("2d", Some(172_800)),
            ("", None),
            ("8", None),
            ("h", None),
            ("0m", None),
            ("1.5h", None),
            ("-1h", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse_span(text), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn a_stamp_may_lack_its_seconds() {
        let at = Time::parse_rfc3339("2026-11-30T22:00:00Z");
        for text in ["2026-11-30T22:00Z", "2026-12-01T00:00+02:00"] {
            assert_eq!(Time::parse_stamp(text), at, "{text}");
        }
        assert_eq!(Time::parse_stamp("2026-11-30T22Z"), None);
    }

    #[test]
    fn stamps_are_written_and_read_back() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_796_057_493_000, "2026-11-30T16:51:33Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(Time(ms).rfc3339(), text);
            assert_eq!(Time::parse_rfc3339(text), Some(Time(ms)));
        }
        for day in (0..60_000).step_by(7) {
            let time = Time(day * DAY_MS);
            assert_eq!(Time::parse_rfc3339(&time.rfc3339()), Some(time));
        }
    }

    #[test]
    fn offsets_and_fractions_are_understood() {
        let utc = Time::parse_rfc3339("2026-11-30T14:51:33Z");
        assert_eq!(Time::parse_rfc3339("2026-11-30T16:51:33+02:00"), utc);
        assert_eq!(Time::parse_rfc3339("2026-11-30T09:21:33-05:30"), utc);
        assert_eq!(Time::parse_rfc3339("2026-11-30T14:51:33.999Z"), utc);
    }

    #[test]
    fn what_is_no_stamp_is_none() {
        for text in [
            "",
            "2026-11-30",
            "0001-01-01T00:00:00Z",
            "2026-13-30T16:51:33Z",
            "2026-11-30T16:51:33",
            "2026-11-30T16:51:33+0200",
            "2026-11-30T16:51:3\u{e9}Z",
            "+026-11-30T16:51:33Z",
        ] {
            assert_eq!(Time::parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn elapsed_time_ignores_steps_of_the_wall_clock_within_one_boot() {
        let reading = |wall, boot, id: &str| Reading {
            wall,
            boot,
            boot_id: id.to_owned(),
        };
        let before = reading(1_000_000, 500, "a");
        for (after, ms) in [
            (reading(0, 700, "a"), 200),
            (reading(9_000_000, 700, "a"), 200),
            (reading(1_000_300, 10, "b"), 300),
            (reading(10, 10, "b"), 0),
            (reading(1_000_300, 10, ""), 300),
        ] {
            assert_eq!(after.elapsed_since(&before), Duration::from_millis(ms));
        }
    }

    #[test]
    fn spans_are_spoken() {
        for (s, text) in [
            (45, "45 s"),
            (240, "4 min"),
            (7200, "2 h"),
            (12_000, "3 h 20 min"),
            (180_000, "2 d 2 h"),
        ] {
            assert_eq!(spoken(Duration::from_secs(s)), text);
        }
    }
}
