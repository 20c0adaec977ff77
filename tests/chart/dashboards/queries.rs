//! Runs every query of every panel on a real Prometheus. It must return the values that follow from the samples, and
//! any small change of it must return others.

use super::{
    all, expected,
    fixture::{Fixture, NOW, substituted},
};
use crate::{
    alerts, mutants,
    prometheus::{Prometheus, Refusal},
    vector::Vector,
};
use cronwheel::telemetry::metrics::table;

/// A query of a panel, and the expected result.
struct Query {
    panel: String,
    expression: String,
    expected: Vector,
}

fn queries(fixture: &Fixture) -> Vec<Query> {
    let mut queries = Vec::new();
    for dashboard in all() {
        for panel in dashboard.panels() {
            let expected = expected::of(fixture, dashboard.name, panel.title);
            let expressions: Vec<String> = panel.expressions().collect();
            assert_eq!(expressions.len(), expected.len(), "{}", panel.title);
            queries.extend(
                expressions
                    .into_iter()
                    .zip(expected)
                    .map(|(expression, expected)| Query {
                        panel: format!("{} / {}", dashboard.title, panel.title),
                        expression,
                        expected,
                    }),
            );
        }
    }
    queries
}

/// Whether a change does not affect the result. Each condition has its reason.
fn is_equivalent(expression: &str, mutant: &mutants::Mutant) -> bool {
    let change = &mutant.change;
    let place = change
        .rsplit_once(", at ")
        .map(|(_, place)| place.parse::<usize>().unwrap());
    // A quantile depends only on the ratios of the buckets, and these changes only multiply all buckets by a number.
    let is_factor = change.starts_with("rate becomes increase") || change.starts_with("sum becomes avg");
    let is_of_quantile = expression.starts_with("histogram_quantile(") && is_factor;
    // Both sides of `on (job, instance)` have the same jobs and instances, so one of the two selections is enough.
    let is_joined = expression.contains("and on (job, instance)")
        && (change.starts_with("without job=~") || change.starts_with("without instance=~"));
    // This holds only for the two sides of the join, not for the divisor after it.
    let is_in_join = place.is_some_and(|place| expression.find(") / ").is_none_or(|divided| place < divided));
    is_of_quantile || is_joined && is_in_join
}

/// Another metric of the same kind and with the same suffix.
fn other_metric(token: &str) -> Option<String> {
    let name = alerts::registered_name(token)?;
    let index = table::ALL.iter().position(|spec| spec.name == name)?;
    let kind = table::ALL[index].kind;
    let mut others = table::ALL[index + 1..].iter().chain(&table::ALL[..index]);
    let other = others.find(|spec| spec.kind == kind)?;
    Some(format!("{}{}", other.name, &token[name.len()..]))
}

fn returns_expected(prometheus: &Prometheus, query: &Query, expression: &str) -> bool {
    match prometheus.value(&substituted(expression), NOW) {
        Ok(result) => result.is_about(&query.expected),
        Err(Refusal::Failed) => false,
        Err(Refusal::Invalid(reason)) => panic!("{expression}: {reason}"),
    }
}

#[test]
fn only_the_unchanged_query_of_a_panel_shows_the_expected_values() {
    let fixture = Fixture::new();
    let prometheus = Prometheus::start(&fixture.text());
    let (mut n_mutants, mut n_equivalent) = (0, 0);
    let mut wrong = Vec::new();
    for query in queries(&fixture) {
        assert!(!query.expected.is_empty(), "{}", query.panel);
        if !returns_expected(&prometheus, &query, &query.expression) {
            let result = prometheus.value(&substituted(&query.expression), NOW);
            wrong.push(format!("{}: {result:?}, not {:?}", query.panel, query.expected));
            continue;
        }
        let mut mutants = mutants::of(&query.expression, |token| other_metric(token).into_iter().collect());
        mutants.push(mutants::Mutant {
            change: "doubled".to_owned(),
            expression: format!("2 * ({})", query.expression),
        });
        for mutant in mutants {
            n_mutants += 1;
            let is_alike = returns_expected(&prometheus, &query, &mutant.expression);
            let is_equivalent = is_equivalent(&query.expression, &mutant);
            n_equivalent += usize::from(is_equivalent);
            if is_alike != is_equivalent {
                wrong.push(format!("{}: {}: {}", query.panel, mutant.change, mutant.expression));
            }
        }
    }
    eprintln!("{n_mutants} changed queries, of which {n_equivalent} are equivalent");
    assert!(
        wrong.is_empty(),
        "{} of {n_mutants}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
