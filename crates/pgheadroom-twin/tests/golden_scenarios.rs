//! Every scenario on every version: counters, pages, WAL by record type, and the place of
//! everything.
//!
//! Origin: `golden/expected/*/scenario-*.json`, written by `tools/record_scenarios.py`, which plays
//! `golden/scenarios/*.toml` on 15.18, 16.14, 17.10 or 17.12, 18.4 and 19rc1.

mod scenarios;

use scenarios::{NOT_REPRODUCED, VERSIONS, recorded};

/// A scenario is equal in everything, or listed as not reproduced. `SCENARIO=NAME` plays one alone,
/// for `tools/mutants.py`.
#[test]
fn scenarios_agree_with_servers() {
    let known = |version: &str, name: &str| {
        NOT_REPRODUCED
            .iter()
            .find(|(versions, _, names)| versions.contains(&version) && names.contains(&name))
            .map(|(_, reason, _)| *reason)
    };
    let mut wrong = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    let mut of_sessions = 0;
    let chosen = std::env::var("SCENARIO").ok();
    let is_wanted = |name: &str| chosen.as_deref().is_none_or(|chosen| chosen == name);
    for version in VERSIONS {
        for scenario in recorded(version, &is_wanted) {
            of_sessions += usize::from(scenario.protocol().is_some());
            names.insert(scenario.name.clone());
            let found = scenario.differences();
            let name = &scenario.name;
            match known(version, name) {
                None if !found.is_empty() => {
                    wrong.push(format!(
                        "{name} differs on {version}:\n  {}",
                        found.join("\n  ")
                    ));
                }
                Some(reason) if found.is_empty() => {
                    wrong.push(format!(
                        "{name} is equal on {version}, but listed as not reproduced: {reason}"
                    ));
                }
                _ => {}
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
    for name in NOT_REPRODUCED.iter().flat_map(|(_, _, listed)| *listed) {
        assert!(
            chosen.is_some() || names.contains(*name),
            "{name} is listed"
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        names.len(),
        wrong.join("\n")
    );
}
