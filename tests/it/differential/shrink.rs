//! Shrinks a query whose answers differ.

use super::queries::Query;

/// Simplifies parts of the query while the answers still differ.
pub(super) fn smallest(query: &Query, mut differs: impl FnMut(&Query) -> bool) -> Query {
    let mut smallest = query.clone();
    // Each round simplifies the query, so the loop ends soon.
    while let Some(smaller) = candidates(&smallest).into_iter().find(|candidate| differs(candidate)) {
        smallest = smaller;
    }
    smallest
}

fn candidates(query: &Query) -> Vec<Query> {
    let mut candidates = Vec::new();
    if query.count > 1 {
        candidates.extend((1..query.count).map(|count| Query { count, ..query.clone() }));
    }
    if query.from.subsec_nanosecond() != 0 {
        let from = jiff::Timestamp::from_second(query.from.as_second()).ok();
        candidates.extend(from.map(|from| Query { from, ..query.clone() }));
    }
    if !query.zone.is_empty() {
        candidates.push(Query {
            zone: String::new(),
            ..query.clone()
        });
    }
    let fields: Vec<&str> = query.schedule.split(' ').collect();
    for index in (0..fields.len()).filter(|index| !matches!(fields[*index], "*" | "0")) {
        for plain in ["*", "0"] {
            let mut plainer = fields.clone();
            plainer[index] = plain;
            candidates.push(Query {
                schedule: plainer.join(" "),
                ..query.clone()
            });
        }
    }
    candidates
}
