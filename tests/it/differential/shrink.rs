//! Finds a smaller query that still shows a difference.

use super::queries::Query;

/// Replaces parts of the query with simpler ones as long as the answers still differ.
pub(super) fn smallest(query: &Query, mut differs: impl FnMut(&Query) -> bool) -> Query {
    let mut smallest = query.clone();
    // Each round simplifies the query, so there are few rounds.
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
    let words: Vec<&str> = query.schedule.split(' ').collect();
    for index in (0..words.len()).filter(|index| !matches!(words[*index], "*" | "0")) {
        for plain in ["*", "0"] {
            let mut plainer = words.clone();
            plainer[index] = plain;
            candidates.push(Query {
                schedule: plainer.join(" "),
                ..query.clone()
            });
        }
    }
    candidates
}
