//! Every scenario on every version: counters, pages, WAL by record type, and the place of
//! everything.
//!
//! Origin: `golden/expected/*/scenario-*.json`, written by `tools/record_scenarios.py`, which plays
//! `golden/scenarios/*.toml` on 15.18, 16.14, 17.10 and 18.4.

mod scenarios;

use std::collections::BTreeMap;

use scenarios::{NOT_REPRODUCED, VERSIONS, recorded};

/// A scenario is equal in everything, or listed as not reproduced. `SCENARIO=NAME` plays one alone,
/// for `tools/mutants.py`.
#[test]
fn scenarios_agree_with_servers() {
    let known: BTreeMap<&str, &str> = NOT_REPRODUCED.into_iter().collect();
    let mut differing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut names = std::collections::BTreeSet::new();
    let mut of_sessions = 0;
    let chosen = std::env::var("SCENARIO").ok();
    let is_wanted = |name: &str| chosen.as_deref().is_none_or(|chosen| chosen == name);
    for version in VERSIONS {
        for scenario in recorded(version, &is_wanted) {
            of_sessions += usize::from(scenario.protocol().is_some());
            names.insert(scenario.name.clone());
            let found = scenario.differences();
            if !found.is_empty() {
                let text = format!("{version}:\n  {}", found.join("\n  "));
                differing.entry(scenario.name).or_default().push(text);
            }
        }
    }
    let expected = if chosen.is_some() {
        1..=1
    } else {
        60..=usize::MAX
    };
    assert!(expected.contains(&names.len()), "{} scenarios", names.len());
    assert!(chosen.is_some() || of_sessions >= 4 * 60, "{of_sessions}");
    let mut wrong = Vec::new();
    for (name, found) in &differing {
        if !known.contains_key(name.as_str()) {
            wrong.push(format!("{name} differs on {}", found.join("\n")));
        }
    }
    for (name, reason) in known {
        if is_wanted(name) && !differing.contains_key(name) {
            wrong.push(format!(
                "{name} is equal, but listed as not reproduced: {reason}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        names.len(),
        wrong.join("\n")
    );
}
