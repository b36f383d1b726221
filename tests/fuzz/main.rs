//! Fuzz tests: text from users, servers and clients is read without a panic, without a hang, and in memory and steps that
//! its length bounds.
//!
//! Each target takes one input. First come the files of its `corpus`, unchanged, then a number of inputs that bolero
//! derives from them (see [`recipe`]). `BOLERO_RANDOM_ITERATIONS=1000000 cargo test --profile bench --test fuzz` derives
//! more. A failure prints the input and the `BOLERO_RANDOM_SEED` that reproduces it. Add an input that failed once to
//! the corpus.
#![allow(clippy::unwrap_used)]

mod linear;
mod recipe;
mod targets;

use std::time::{Duration, Instant};

use recipe::{Corpus, Input};

/// An input of [`recipe::LONGEST`] bytes takes less than milliseconds; one that takes this long on a busy machine
/// hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Checks one input, and returns its duration if that was too long.
fn judged(input: &Input, judge: fn(&[u8])) {
    let began = Instant::now();
    judge(&input.0);
    let took = began.elapsed();
    assert!(took < LONGEST_WAIT, "{took:?} for {input:?}");
}

macro_rules! fuzz {
    ($name:ident, $corpus:literal, $judge:path) => {
        #[test]
        fn $name() {
            let corpus = Corpus::read($corpus);
            for input in corpus.inputs() {
                println!("{input:?}");
                judged(input, $judge);
            }
            bolero::check!()
                .with_iterations(200)
                .with_type::<recipe::Recipe>()
                .map(move |recipe| corpus.cook(&recipe))
                .for_each(|input| judged(input, $judge));
        }
    };
}

fuzz!(schedules_are_read_and_searched_to_an_end, "schedules", targets::schedule);
fuzz!(policies_are_read_and_their_schedules_searched_to_an_end, "policies", targets::policies);
fuzz!(objects_are_decoded_in_memory_that_their_text_bounds, "objects", targets::object);
fuzz!(lists_and_watches_are_followed_in_memory_that_their_text_bounds, "watches", targets::watch);
fuzz!(patches_leave_the_server_and_the_object_whole_in_steps_that_their_text_bounds, "patches", linear::patch);
fuzz!(command_lines_are_judged, "flags", targets::flags);
fuzz!(manifests_are_read_in_memory_that_their_text_bounds, "manifests", targets::manifest);
fuzz!(manifests_are_checked_in_steps_that_their_text_bounds, "manifests", linear::check_manifests);
fuzz!(reports_are_written_in_steps_that_their_objects_bound, "objects", linear::reports);
