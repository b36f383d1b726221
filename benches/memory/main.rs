//! The memory that a cached record takes, whatever its author wrote: a table of bytes for each object.
//!
//! `cargo bench --bench memory` reads 1,000 objects of each filling into a store, as a watch does, searches each CronJob's
//! next slot, and prints the bytes that are allocated then. `cargo test` reads a few. Both fail when a record takes more
//! than its filling allows.
#![allow(missing_docs)]

mod fillings;

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use allocation_counter::measure;
use chrono::{DateTime, Utc};
use cronjob_controller::api::batch_v1::{CronJob, Job};
use cronjob_controller::api::{Interner, Object};
use cronjob_controller::cache::Store;
use fillings::{FILLINGS, Filling, Record};
use schedule::Zone;

/// Objects of each filling.
const MANY: usize = 1_000;
const FEW: usize = 4;

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
    let read = |store: &Store<T>, interner: &Interner, number| {
        let text = (filling.object)(number).to_string();
        let object = T::decode_for_cache(&text, interner).expect("an object that is read");
        used(&object);
        store.upsert(object);
        text.len()
    };
    // The tables of zones are read once, and a table that grows by doubling has room for twice as many.
    read(&Store::new([None]), &Interner::default(), 0);
    let (mut written, mut kept) = (0, None);
    let counted = measure(|| {
        let (store, interner) = (Store::new([None]), Interner::default());
        for number in 0..count {
            written += read(&store, &interner, number);
        }
        kept = Some((store, interner));
    });
    black_box(kept);
    (written / count, usize::try_from(counted.bytes_current).expect("more than nothing") / count)
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
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}
