//! Things by the id of their session.
//!
//! This file does not know what they are.

use super::SessionId;
use crate::json::{Map, Value};
use crate::stored::{Restored, Stored};

/// A map in the order of the ids. Made of a list: a `BTreeMap` of another kind
/// than JSON's weighs 8 KB, and there are a few dozen sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ById<T>(Vec<(SessionId, T)>);

impl<T> Default for ById<T> {
    fn default() -> ById<T> {
        ById(Vec::new())
    }
}

impl<T> ById<T> {
    /// Where it is, or where it would be.
    fn place(&self, id: &SessionId) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(id))
    }

    /// That of an id.
    pub fn get(&self, id: &SessionId) -> Option<&T> {
        let at = self.place(id).ok()?;
        Some(&self.0[at].1)
    }

    /// That of an id, to be changed.
    pub fn get_mut(&mut self, id: &SessionId) -> Option<&mut T> {
        let at = self.place(id).ok()?;
        Some(&mut self.0[at].1)
    }

    /// That of an id, made when there is none yet.
    pub fn get_or_make(&mut self, id: &SessionId, make: impl FnOnce() -> T) -> &mut T {
        let at = self.place(id).unwrap_or_else(|at| {
            self.0.insert(at, (id.clone(), make()));
            at
        });
        &mut self.0[at].1
    }

    /// Keeps those for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&SessionId, &mut T) -> bool) {
        self.0.retain_mut(|(id, one)| keep(id, one));
    }

    /// All, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&SessionId, &T)> {
        self.0.iter().map(|(id, one)| (id, one))
    }

    /// All, in the order of their ids, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&SessionId, &mut T)> {
        self.0.iter_mut().map(|(id, one)| (&*id, one))
    }

    /// All without their ids.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, one)| one)
    }

    /// All without their ids, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, one)| one)
    }
}

impl<T: Stored> Stored for ById<T> {
    fn blank() -> ById<T> {
        ById::default()
    }

    fn needed(&self) -> bool {
        false
    }

    fn store(&mut self) -> Value {
        let mut map = Map::new();
        for (id, value) in &mut self.0 {
            map.insert(id.to_string(), value.store());
        }
        Value::Object(map)
    }

    fn restore(&mut self, value: &Value) -> Restored {
        for (id, value) in value.as_object().ok_or("")?.iter() {
            let id = SessionId::parse(id).ok_or("")?;
            self.get_or_make(&id, T::blank).restore(value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut ours, mut map) = (ById::default(), BTreeMap::new());
        let mut seed = 1u32;
        for round in 0..2000u64 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = SessionId::parse(&format!("{}-1", (seed >> 16) % 40)).unwrap();
            assert_eq!(ours.get(&id), map.get(&id));
            match seed >> 30 {
                0 => {
                    ours.retain(|known, value| *known != id && *value % 7 != 0);
                    map.retain(|known, value| *known != id && *value % 7 != 0);
                }
                1 => {
                    let changed = ours.get_mut(&id).map(|value| *value += 1);
                    assert_eq!(changed, map.get_mut(&id).map(|value| *value += 1));
                }
                _ => {
                    let value = *ours.get_or_make(&id, || round);
                    assert_eq!(value, *map.entry(id).or_insert(round));
                }
            }
            assert!(ours.iter().eq(map.iter()) && ours.values().eq(map.values()));
        }
        let json = ours.store();
        let mut again = ById::blank();
        assert_eq!(again.restore(&json), Ok(()));
        assert_eq!(again, ours);
        assert_eq!(json.as_object().map(Map::len), Some(map.len()));
    }
}
