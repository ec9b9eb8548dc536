//! Does each scenario notice when the rule that it is about does not hold?
//!
//! `cargo test --release --features mutations --test mutations`. A scenario that passes with and
//! without its rule shows nothing.

#![cfg(feature = "mutations")]

mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pgheadroom_twin::rules::{Rule, without};
use scenarios::{NOT_REPRODUCED, VERSIONS, recorded};

/// Rules that cannot be switched off, each with the reason.
const NOT_SWITCHED: [(&str, &str); 0] = [];

/// With its rule a scenario passes, without it fails, on one version at least.
#[test]
fn every_scenario_notices_its_rule() {
    let rules: BTreeMap<&str, Rule> = Rule::ALL.iter().map(|&rule| (rule.name(), rule)).collect();
    let not_reproduced: BTreeMap<&str, &str> = NOT_REPRODUCED.into_iter().collect();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {})); // a twin without one of its rules may well panic
    let (mut all, mut noticed) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong = Vec::new();
    for version in VERSIONS.into_iter().rev() {
        for scenario in recorded(version) {
            let name = scenario.name.clone();
            if noticed.contains(&name) || not_reproduced.contains_key(name.as_str()) {
                continue;
            }
            let Some(&rule) = rules.get(scenario.rule.as_str()) else {
                wrong.push(format!("{name}: no rule {}", scenario.rule));
                continue;
            };
            all.insert(name.clone());
            let holds = AssertUnwindSafe(|| scenario.differences().is_empty());
            if without(rule, || catch_unwind(holds)).unwrap_or(false) {
                continue;
            }
            noticed.insert(name.clone());
            if !scenario.differences().is_empty() {
                wrong.push(format!("{name}: fails on {version} with its rule too"));
            }
        }
    }
    std::panic::set_hook(hook);
    let known: BTreeSet<String> = NOT_SWITCHED.into_iter().map(|one| one.0.into()).collect();
    let unnoticed: BTreeSet<String> = all.difference(&noticed).cloned().collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(
        unnoticed, known,
        "scenarios that do not notice that their rule is off"
    );
}
