//! The two hashes of sharding, implemented here because labels store their values and all versions must agree on them.
//!
//! FNV-1a-64 hashes keys, because API servers that filter by hash range use it. The last bytes of a short text hardly
//! affect its upper bits, so hashes for the ring pass through a finalizer as well.

use std::hash::{BuildHasher, Hasher};

use super::ids::Uid;

/// The name of the mapping from a uid to its bucket. Another mapping needs another name, and members with different
/// names never own shards side by side.
pub const HASH_SCHEME: &str = "fnv1a64-uid-10";

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The 64-bit FNV-1a hash of `bytes`.
pub fn fnv1a_64(bytes: &[u8]) -> u64 {
    feed(OFFSET_BASIS, bytes)
}

fn feed(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Spreads every bit of the hash over every bit of the result (the finalizer of `MurmurHash3`).
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The FNV-1a-64 hash of `bytes` with a finalizer: all its bits depend on all of the input.
pub fn even_hash(bytes: &[u8]) -> u64 {
    mix(fnv1a_64(bytes))
}

/// The hash of a CronJob's uid that determines its offset in the window of the option `spread` (O-1).
pub fn spread_hash(cron_job: &Uid) -> u64 {
    even_hash(cron_job.to_string().as_bytes())
}

/// The hash of a CronJob's uid and the token of a run that is asked for, which names the Job of the run (O-10).
pub fn run_hash(cron_job: &Uid, token: &str) -> u64 {
    even_hash(format!("{cron_job}/{token}").as_bytes())
}

/// Builds the hasher of the ring. It has no key and no randomness, so every process and machine gets the same hashes.
#[derive(Clone, Debug)]
pub(crate) struct StableHashBuilder;

impl BuildHasher for StableHashBuilder {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        StableHasher(OFFSET_BASIS)
    }
}

/// FNV-1a-64 with a finalizer. Stable only for callers that write bytes: the standard library may change how it hashes
/// a string or a number, so keys of the ring implement `Hash` by one `write`.
pub(crate) struct StableHasher(u64);

impl Hasher for StableHasher {
    fn finish(&self) -> u64 {
        mix(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = feed(self.0, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::options::{OptionName, Options};

    #[test]
    fn fnv1a_64_matches_published_values() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a_64(text.as_bytes()), hash, "{text}");
        }
    }

    /// Ten thousand CronJobs, so that the largest second of an even distribution is within three times the mean.
    #[test]
    fn offsets_of_spread_are_even() {
        const N_CRON_JOBS: u32 = 10_000;
        let mut per_second = [0_u32; 600];
        for number in 0..N_CRON_JOBS {
            let uid = format!("{number:08x}-4f50-6172-8394-a5b6c7d8e9f0");
            let get = |name: &str| (name == OptionName::Spread.annotation()).then_some("10m");
            let options = Options::read(get, None, even_hash(uid.as_bytes()));
            per_second[options.offset_seconds.unwrap() as usize] += 1;
        }
        let largest = *per_second.iter().max().unwrap();
        assert!(largest * 600 <= 3 * N_CRON_JOBS, "{largest} in a second");
    }

    #[test]
    fn ring_hash_is_stable() {
        for (text, hash) in [
            ("", 0xefd0_1f60_ba99_2926),
            ("a", 0x82a2_a958_a9be_ce5b),
            ("9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48", 0x77b8_b3fa_33ca_7a80),
        ] {
            let mut hasher = StableHashBuilder.build_hasher();
            hasher.write(text.as_bytes());
            assert_eq!(hasher.finish(), hash, "{text} {:#x}", hasher.finish());
        }
    }
}
