//! Rules of the options after `docs/spec/options.md`, without code of the controller. The simulation and the fleets share
//! them.

use jiff::SignedDuration;

/// A slot that has not started this long after its start was missed (O-2).
pub(crate) const MISSED_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// The value of `missed-runs` or `on-resume`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CatchUp {
    #[default]
    Latest,
    Skip,
    All(usize),
}

impl CatchUp {
    /// The value of the annotation.
    pub(crate) fn text(self) -> String {
        match self {
            CatchUp::Latest => "latest".to_owned(),
            CatchUp::Skip => "skip".to_owned(),
            CatchUp::All(count) => format!("all {count}"),
        }
    }
}

/// The offset of a CronJob in a window of `spread` (O-1).
pub(crate) fn spread_offset(uid: &str, window_seconds: i64) -> SignedDuration {
    let scaled = u128::from(finalized_fnv1a_64(uid)) * u128::from(window_seconds.unsigned_abs());
    SignedDuration::from_secs(i64::try_from(scaled >> 64).unwrap())
}

/// The FNV-1a-64 hash of a text, after the finalizer of `MurmurHash3`.
fn finalized_fnv1a_64(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[test]
fn an_offset_is_below_its_window() {
    // The hash of "a" is 0x82a2_a958_..., a little more than half of all numbers.
    let offsets = [0, 1, 2, 59, 3_600].map(|window| spread_offset("a", window).as_secs());
    assert_eq!(offsets, [0, 0, 1, 30, 1_837]);
}
