//! Profiles: whatever stands in one, it is played or refused with what was found, and none panics.
//!
//! Input that begins with `{` is the profile's text, which is only read: a legal one may ask for a
//! billion rows. Any other input is a list of choices, of which a profile is made that is small
//! enough to be played, as `random_profiles.rs` makes it of random ones.

#![no_main]

#[path = "../../crates/pgheadroom-twin/tests/common/random_profile.rs"]
mod random_profile;

use libfuzzer_sys::fuzz_target;
use pgheadroom_twin::profile::{Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::{Conditions, play};
use random_profile::{Choices, profile};

const VERSIONS: [&str; 3] = ["15.18", "16.14", "18.4"];

fuzz_target!(|data: &[u8]| {
    if let Some(text) = data
        .first()
        .filter(|first| **first == b'{')
        .and(std::str::from_utf8(data).ok())
    {
        if let Err(error) = ProfileSpec::from_json(text) {
            assert!(matches!(error, ProfileError::NotAProfile { .. }), "{error}");
        }
        return;
    }
    let version = VERSIONS[usize::from(data.first().copied().unwrap_or(0)) % VERSIONS.len()];
    let numbers = data.get(1..).unwrap_or_default().chunks_exact(2);
    let numbers = numbers
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let text = profile(&mut Choices::of_numbers(numbers)).to_string();
    match ProfileSpec::from_json(&text) {
        Err(error) => assert!(matches!(error, ProfileError::NotAProfile { .. }), "{error}"),
        Ok(spec) => {
            let version = version.parse().expect("a version of ours");
            if let Err(error) = play(&spec, version, &Conditions::default(), &Monitor::default()) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
});
