//! The command line of the harness.

use std::path::PathBuf;

use crate::cases::{self, Case};

const USAGE: &str = "\
usage: burst [TABLE...] [OPTION...]

tables (more than one may be given)
  --quick          bare writes, in-tree tuned, this controller; some 5 minutes a round
  --standard       the table of docs/benchmarks.md; some 10 minutes a round; 3 rounds
  --singles        one CronJob due at a time
  --sweep          --concurrent-cronjob-syncs from 8 to 128, and bare writes with 32 and 64 in flight
  --slow           the in-tree controller with default flags, 1,000 CronJobs: two minutes late
  --spread         the same slots with and without `spread: 1m`; two minutes a round
  --policies       the same slots without policies and with three; three minutes a round
  --polling        20 of 5,000 CronJobs due: polling V1, in-tree V2, this controller; some 6 minutes

options
  --rounds N       how often each table is run through
  --size N         CronJobs due at once in quick, standard, sweep, spread and policies (default 2000)
  --at minute      the schedule of one exact minute (default)
  --at second      @every schedules that fall on one whole second, so that no round waits for the minute; their status
                   was written once before, by hand, which makes each later write of it dearer
  --only TEXT      only the cases whose name holds TEXT; may be repeated
  --append         add the rounds to those in the directory
  --out DIR        where the CSV files and the plot go (default target/burst)
  --cases          list the names of the cases";

/// The alignment of due instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Minute,
    Second,
}

#[derive(Debug)]
pub struct Options {
    pub cases: Vec<Case>,
    pub rounds: usize,
    pub at: At,
    pub append: bool,
    pub out: PathBuf,
    /// As part of the ordinary tests.
    pub small: bool,
}

/// The parsed command line.
pub enum Ask {
    Run(Options),
    /// Run the polling controller with this kubeconfig and these flags: the harness starts itself this way.
    Poll(PathBuf, Vec<String>),
    Print(String),
}

const TABLES: [&str; 8] =
    ["--quick", "--standard", "--singles", "--sweep", "--slow", "--spread", "--policies", "--polling"];

/// Reads the command line.
pub fn parse(args: impl Iterator<Item = String>) -> Result<Ask, String> {
    let args: Vec<String> = args.collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--help") || has("-h") {
        return Ok(Ask::Print(USAGE.to_owned()));
    }
    if let [first, kubeconfig, flags @ ..] = args.as_slice()
        && first == "--polling-controller"
    {
        return Ok(Ask::Poll(PathBuf::from(kubeconfig), flags.to_vec()));
    }
    if !args.iter().any(|arg| TABLES.contains(&arg.as_str())) {
        return Ok(as_test(&args));
    }
    let mut tables = Vec::new();
    let (mut rounds, mut size, mut at) = (None, 2_000, None);
    let (mut only, mut append, mut list) = (Vec::new(), false, false);
    let mut out = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/burst"));
    let mut rest = args.into_iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg} needs a value; --help lists the options"));
        match arg.as_str() {
            "--bench" => {}
            "--rounds" => rounds = Some(number(&arg, &value()?)?),
            "--size" => size = number(&arg, &value()?)?,
            "--at" => at = Some(instant(&value()?)?),
            "--only" => only.push(value()?),
            "--out" => out = PathBuf::from(value()?),
            "--append" => append = true,
            "--cases" => list = true,
            table if TABLES.contains(&table) => tables.push(arg),
            _ => return Err(format!("{arg} is no option; --help lists them")),
        }
    }
    let is_standard = tables.iter().any(|table| table == "--standard");
    let mut cases: Vec<Case> = tables.iter().flat_map(|table| table_of(table, size)).collect();
    cases.retain(|case| only.is_empty() || only.iter().any(|text| case.name.contains(text.as_str())));
    if list {
        let names: Vec<String> = cases.into_iter().map(|case| case.name).collect();
        return Ok(Ask::Print(names.join("\n")));
    }
    if cases.is_empty() {
        return Err(format!("no case has {} in its name; --cases lists them", only.join(" or ")));
    }
    Ok(Ask::Run(Options {
        cases,
        rounds: rounds.unwrap_or(if is_standard { 3 } else { 1 }),
        at: at.unwrap_or(At::Minute),
        append,
        out,
        small: false,
    }))
}

/// cargo's own calls: `cargo bench` passes `--bench`, `cargo test` filters and flags of the standard harness.
fn as_test(args: &[String]) -> Ask {
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--bench") {
        return Ask::Print(
            "burst: skipped: it runs for minutes on the release build; `make bench-burst` runs it".to_owned(),
        );
    }
    if has("--list") {
        return Ask::Print("burst: test".to_owned());
    }
    let mut filters = args.iter().filter(|arg| !arg.starts_with('-')).peekable();
    if filters.peek().is_some() && !filters.any(|filter| "burst".contains(filter.as_str())) {
        return Ask::Print("burst: no case matches".to_owned());
    }
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("burst");
    Ask::Run(Options { cases: cases::small(), rounds: 1, at: At::Second, append: false, out, small: true })
}

fn table_of(name: &str, size: usize) -> Vec<Case> {
    match name {
        "--quick" => cases::quick(size),
        "--standard" => cases::standard(size),
        "--singles" => cases::singles(),
        "--sweep" => cases::sweep(size),
        "--slow" => cases::slow(),
        "--spread" => cases::spread(size),
        "--policies" => cases::policies(size),
        _ => cases::polling(),
    }
}

fn number(flag: &str, text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{flag} {text}: a number above 0 is needed")),
    }
}

fn instant(text: &str) -> Result<At, String> {
    match text {
        "minute" => Ok(At::Minute),
        "second" => Ok(At::Second),
        _ => Err(format!("--at {text}: minute or second is needed")),
    }
}
