//! A seed's chances: xorshift, so that a run can be repeated for ever.
//!
//! This file does not know what hangs on them.

/// A source of chances.
pub struct Chance(u64);

impl Chance {
    /// The same seed gives the same chances.
    pub fn new(seed: u64) -> Chance {
        // Small seeds have to differ in more than a few bits.
        let mut mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 29;
        Chance(mixed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One of `from..=to`.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + (self.next() >> 11) % (to - from + 1)
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.within(1, 100) <= percent
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let last = of.len().checked_sub(1)?;
        let at = self.within(0, last as u64);
        of.get(at as usize)
    }
}
