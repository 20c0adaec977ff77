//! An explanation as text, for a person who asks why.

use std::io::{self, Write};

use jiff::Timestamp;

use super::{trial::Explanation, world::World};

pub(super) fn write(
    world: &World,
    explanations: &[Explanation],
    now: Timestamp,
    output: &mut impl Write,
) -> io::Result<()> {
    for (subject, explanation) in world.subjects.iter().zip(explanations) {
        writeln!(
            output,
            "{} {now} {}",
            subject.name,
            explanation.reason.meaning().sentence
        )?;
    }
    Ok(())
}
