//! The memory that a cached record takes, whatever its author wrote: a table of bytes for each object.
//!
//! `cargo bench --bench memory` reads 1,000 objects of each filling into a store, as a watch does, searches each CronJob's
//! next slot, and prints the bytes that are allocated then. `cargo test` reads a few. Both fail when a record takes more
//! than its filling allows.
#![allow(missing_docs)]
#![allow(clippy::needless_pass_by_value, reason = "json! makes values")]

mod fillings;

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use allocation_counter::measure;
use chrono::{DateTime, Utc};
use cronjob_controller::api::batch_v1::{CronJob, Job};
use cronjob_controller::api::{Interner, Object};
use cronjob_controller::cache::Store;
use fillings::{FILLINGS, Filling, Record, SERIAL};
use schedule::Zone;

/// Objects of each filling.
const MANY: usize = 1_000;
const FEW: usize = 3;

fn main() -> ExitCode {
    let count = if env::args().any(|arg| arg == "--bench") { MANY } else { FEW };
    println!("| | filled with as much as the API server takes | object | record |");
    println!("| --- | --- | ---: | ---: |");
    let mut is_good = true;
    for filling in FILLINGS {
        let (written, kept) = match filling.record {
            Record::CronJob => retained::<CronJob>(&filling, count, search),
            Record::Job => retained::<Job>(&filling, count, |_| {}),
        };
        println!("| {:?} | {} | {} | {} |", filling.record, filling.name, bytes(written), bytes(kept));
        if kept > filling.most {
            eprintln!(
                "{:?} with {}: {kept} bytes, and at most {} are allowed",
                filling.record, filling.name, filling.most
            );
            is_good = false;
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Bytes of an object as JSON, and of its record in a store with all that hangs on it.
fn retained<T: Object>(filling: &Filling, count: usize, used: impl Fn(&T)) -> (usize, usize) {
    let text = (filling.object)().to_string();
    let (store, interner) = (Store::new([None]), Interner::default());
    let read = |number: usize| {
        let object = T::decode_for_cache(&text.replace(SERIAL, &format!("{number:012}")), &interner);
        let object = object.expect("an object that is read");
        used(&object);
        store.upsert(object);
    };
    // Reads the tables of zones, and makes those of the store.
    read(0);
    let counted = measure(|| (1..=count).for_each(read));
    assert_eq!(store.len(), count + 1);
    (text.len(), usize::try_from(counted.bytes_current).expect("more than nothing") / count)
}

/// What the controller does with a CronJob first.
fn search(cron_job: &CronJob) {
    let now: DateTime<Utc> = "2026-03-02T09:30:00Z".parse().expect("a time");
    if let Some(schedule) = cron_job.schedule(Zone::UTC) {
        black_box(schedule.next_after(now));
    }
    black_box(cron_job.timing(Zone::UTC));
}

fn bytes(count: usize) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..1_000_000 => format!("{} kB", count / 1_000),
        _ => format!("{}.{} MB", count / 1_000_000, count / 100_000 % 10),
    }
}
