//! The files of `contrib/` as `build.rs` packed them: 128 pairs of bytes, and the
//! texts, each ended by a zero. A byte from 128 on stands for a pair.
//!
//! This file does not know what is in them.

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contrib.packed"));

/// The text that was packed at this place.
pub fn text(place: usize) -> String {
    let (pairs, texts) = PACKED.split_at(2 * 128);
    let mut page = String::new();
    let text = texts.split(|byte| *byte == 0).nth(place);
    for byte in text.unwrap_or_default() {
        unpack(*byte, pairs, &mut page);
    }
    page
}

fn unpack(byte: u8, pairs: &[u8], page: &mut String) {
    match byte.checked_sub(128) {
        None => page.push(char::from(byte)),
        Some(at) => {
            for byte in pairs.iter().skip(2 * usize::from(at)).take(2) {
                unpack(*byte, pairs, page);
            }
        }
    }
}
