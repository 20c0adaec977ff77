//! Storage for records of one type, in chunks. Growth adds a chunk and copies nothing, and a record's place number does
//! not change while the record exists.
//!
//! A single vector would sometimes take twice the memory of its content, and three times while it grows.
//!
//! Invariant: `free` lists each vacant place once.

/// Records per chunk: large enough that the vector of chunks is negligible, small enough that a small shard is small.
const CHUNK_LEN: usize = 64;

/// A chunked slab of records, addressed by place number.
pub(super) struct Slab<T> {
    chunks: Vec<Box<[Option<T>; CHUNK_LEN]>>,
    /// Vacated places; the most recent is last.
    free: Vec<u32>,
    /// Places that have been used at least once.
    n_places: u32,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Slab<T> {
        Slab {
            chunks: Vec::new(),
            free: Vec::new(),
            n_places: 0,
        }
    }

    /// All places that may contain a record, in the order in which they were first used.
    pub(super) fn places(&self) -> std::ops::Range<u32> {
        0..self.n_places
    }

    pub(super) fn get(&self, place: u32) -> Option<&T> {
        let place = place as usize;
        self.chunks.get(place / CHUNK_LEN)?[place % CHUNK_LEN].as_ref()
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let place = place as usize;
        self.chunks.get_mut(place / CHUNK_LEN)?[place % CHUNK_LEN].as_mut()
    }

    /// The record of a place that has one.
    pub(super) fn at(&self, place: u32) -> &T {
        self.get(place).unwrap_or_else(|| vacant::<T>(place))
    }

    pub(super) fn at_mut(&mut self, place: u32) -> &mut T {
        self.get_mut(place).unwrap_or_else(|| vacant::<T>(place))
    }

    /// Stores a record and returns its place.
    pub(super) fn put(&mut self, record: T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            let place = self.n_places;
            self.n_places += 1;
            place
        });
        let (chunk, offset) = (place as usize / CHUNK_LEN, place as usize % CHUNK_LEN);
        if chunk == self.chunks.len() {
            self.chunks.push(Box::new([const { None }; CHUNK_LEN]));
        }
        self.chunks[chunk][offset] = Some(record);
        place
    }

    /// Removes the record of a place.
    pub(super) fn take(&mut self, place: u32) -> Option<T> {
        let offset = place as usize % CHUNK_LEN;
        let record = self.chunks.get_mut(place as usize / CHUNK_LEN)?[offset].take()?;
        self.free.push(place);
        Some(record)
    }
}

#[cold]
fn vacant<T>(place: u32) -> ! {
    panic!("place {place} has no {}", std::any::type_name::<T>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn slab_matches_a_map() {
        let (mut slab, mut model) = (Slab::new(), BTreeMap::new());
        let mut random = 0x5EED_u64;
        for record in 0..2_000_u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = u32::try_from(random % 300).unwrap();
            if (random >> 40).is_multiple_of(4) {
                assert_eq!(slab.take(place), model.remove(&place));
            } else {
                let taken = slab.put(record);
                assert_eq!(model.insert(taken, record), None, "{taken} was in use");
            }
            assert_eq!(slab.get(place), model.get(&place));
            assert_eq!(slab.get_mut(place), model.get_mut(&place));
        }
        let held: Vec<u32> = slab.places().filter(|place| slab.get(*place).is_some()).collect();
        assert_eq!(held, model.keys().copied().collect::<Vec<_>>());
        assert_eq!(slab.free.len() + model.len(), slab.n_places as usize);
        assert!(slab.get(u32::MAX).is_none());
    }

    #[test]
    #[should_panic(expected = "place 7 has no u64")]
    fn a_vacant_place_is_named_with_the_type_of_its_records() {
        Slab::<u64>::new().at(7);
    }
}
