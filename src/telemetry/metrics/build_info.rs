//! The versions of this build.

use super::{Register, table};

/// Registers the metric and sets it.
pub(super) fn register_build(register: &Register<'_>) -> Result<(), prometheus::Error> {
    let tzdb = crate::schedule::zone::tzdb_version();
    register
        .gauges(&table::BUILD)?
        .with_label_values(&[env!("CARGO_PKG_VERSION"), tzdb])
        .set(1);
    Ok(())
}
