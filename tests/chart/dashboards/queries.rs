//! Runs every query of every panel on a real Prometheus. It must return the values that follow from the samples, and
//! any small change of it must return others.

use super::{
    all, expected,
    fixture::{Fixture, NOW, substituted},
    surroundings::annotations,
};
use crate::{
    alerts, mutants,
    prometheus::{Prometheus, Refusal},
    vector::{Labels, Vector},
};
use cronwheel::telemetry::metrics::table;

/// The end of an expression that has a value even if nothing is scraped.
const NO_REPLICA: &str = " or vector(0)";

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
            let name = format!("{} / {}", dashboard.title, panel.title);
            let both = expressions.into_iter().zip(expected);
            queries.extend(both.map(|(expression, expected)| Query {
                panel: name.clone(),
                expression,
                expected,
            }));
        }
    }
    let annotations = annotations().iter().map(|annotation| Query {
        panel: annotation.name.to_owned(),
        expression: annotation.expression(),
        expected: expected::of_annotation(fixture, annotation.name),
    });
    queries.extend(annotations);
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
    // The value without any replica, which another test expects.
    let is_fallback = expression.ends_with(NO_REPLICA)
        && (change.starts_with("without the right of or") || change.starts_with("0 becomes"));
    // Both operands have the label `cluster`, by which they are matched, so one selection is enough.
    let is_by_cluster = expression.starts_with("sum by (cluster) ")
        && [") / ", ") + "].iter().any(|between| expression.contains(between));
    let is_matched = is_by_cluster && change.starts_with("without cluster=~");
    // The inner aggregation has no such label.
    let is_inner = |place: usize| {
        expression[place..]
            .split_once(") (")
            .is_some_and(|(_, inner)| inner.starts_with("max by ("))
    };
    let is_of_no_label = change.contains(": with instance, at ") && place.is_some_and(is_inner);
    is_of_quantile || is_joined && is_in_join || is_fallback || is_matched || is_of_no_label
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

/// Asserts that the number of replicas and the part of the shards that they lead are 0, and not missing, if none is scraped.
fn assert_no_replica_is_zero(prometheus: &Prometheus) {
    let expressions = all().into_iter().flat_map(|dashboard| {
        let panels = dashboard
            .panels()
            .flat_map(|panel| panel.expressions().collect::<Vec<_>>());
        panels.collect::<Vec<_>>()
    });
    let mut n_expressions = 0;
    for expression in expressions.filter(|expression| expression.ends_with(NO_REPLICA)) {
        let nothing = substituted(&expression.replace("$job", "no such job"));
        let result = prometheus.value(&nothing, NOW).unwrap();
        assert_eq!(result, Vector::from([(Labels::new(), 0.0)]), "{expression}");
        n_expressions += 1;
    }
    assert_eq!(n_expressions, 2);
}

#[test]
fn only_the_unchanged_query_of_a_panel_shows_the_expected_values() {
    let fixture = Fixture::new();
    let prometheus = Prometheus::start(&fixture.text());
    assert_no_replica_is_zero(&prometheus);
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
