//! The cases: each is one row of the table.

use std::time::Duration;

use testkit::fixture::controller::Controller;

/// The creator of the Jobs.
#[derive(Debug, Clone)]
pub enum Contender {
    /// No controller: this many clients create the Jobs concurrently.
    Floor { in_flight: usize },
    /// A controller process with these arguments.
    Process { controller: Controller, args: Vec<String> },
    /// Lists everything every ten seconds and syncs one CronJob after the other, with this request rate.
    Polling { qps: u32, burst: u32 },
}

/// The distribution of the due instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// All at one instant.
    Together,
    /// One each second.
    Alone,
}

#[derive(Debug, Clone)]
pub struct Case {
    /// Unique; the key in the CSV files.
    pub name: String,
    /// The name in the table.
    pub title: String,
    pub contender: Contender,
    pub namespaces: usize,
    /// CronJobs that are due.
    pub due: usize,
    /// CronJobs that are not due.
    pub idle: usize,
    pub timing: Due,
    /// The window over which the due instants are spread, in minutes; none: 0.
    pub window: u32,
    /// Whether each CronJob has three policies, none of which holds a slot.
    pub policies: bool,
    /// The time limit after the last due instant.
    pub limit: Duration,
}

impl Case {
    pub fn describe(&self) -> String {
        let idle = if self.idle > 0 { format!(" of {}", self.due + self.idle) } else { String::new() };
        let when = if self.timing == Due::Alone { ", one a second" } else { "" };
        format!("{}: {}{idle} due in {}{when}", self.title, self.due, namespaces(self.namespaces))
    }

    fn named(mut self, suffix: &str) -> Self {
        self.name = format!("{}/{suffix}", self.name);
        self
    }

    fn spread(mut self, namespaces: usize) -> Self {
        self.namespaces = namespaces;
        let suffix = if namespaces == 1 { "one".to_owned() } else { namespaces.to_string() };
        self.named(&suffix)
    }
}

pub fn namespaces(count: usize) -> String {
    if count == 1 { "one namespace".to_owned() } else { format!("{count} namespaces") }
}

fn case(name: &str, title: &str, contender: Contender, due: usize) -> Case {
    Case {
        name: name.to_owned(),
        title: title.to_owned(),
        contender,
        namespaces: 10,
        due,
        idle: 0,
        timing: Due::Together,
        window: 0,
        policies: false,
        limit: Duration::from_secs(60),
    }
}

fn floor(in_flight: usize, size: usize) -> Case {
    case(
        &format!("floor-{in_flight}"),
        &format!("bare writes, {in_flight} in flight"),
        Contender::Floor { in_flight },
        size,
    )
}

fn process(name: &str, title: &str, controller: Controller, args: &[&str], size: usize) -> Case {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    case(name, title, Contender::Process { controller, args }, size)
}

fn in_tree_tuned(size: usize) -> Case {
    let args = ["--kube-api-qps=10000", "--kube-api-burst=10000", "--concurrent-cron-job-syncs=64"];
    process("in-tree-tuned", "in-tree V2, qps/burst 10,000, 64 syncs", Controller::InTree, &args, size)
}

fn in_tree_default(size: usize) -> Case {
    process("in-tree-default", "in-tree V2, default flags", Controller::InTree, &[], size)
}

fn ours(size: usize) -> Case {
    process("ours", "this controller, default flags", Controller::Ours, &[], size)
}

fn ours_tuned(size: usize) -> Case {
    let args = ["--kube-api-qps=10000", "--kube-api-burst=10000", "--concurrent-cronjob-syncs=64"];
    process("ours-tuned", "this controller, qps/burst 10,000, 64 syncs", Controller::Ours, &args, size)
}

fn ours_with(syncs: usize, size: usize) -> Case {
    let flag = format!("--concurrent-cronjob-syncs={syncs}");
    process(
        &format!("ours-{syncs:03}"),
        &format!("this controller, {syncs} syncs"),
        Controller::Ours,
        &[flag.as_str()],
        size,
    )
}

fn alone(case: Case) -> Case {
    Case { timing: Due::Alone, namespaces: 1, due: 20, ..case }.named("alone")
}

/// The workload of the articles on the second controller: a few CronJobs are due, thousands are not.
fn few_of_many(case: Case) -> Case {
    Case { due: 20, idle: 4_980, limit: Duration::from_secs(420), ..case }.spread(1).named("few")
}

/// The floor, the tuned in-tree controller and this one, in both workloads.
pub fn quick(size: usize) -> Vec<Case> {
    vec![
        floor(32, size).spread(10),
        in_tree_tuned(size).spread(10),
        ours(size).spread(10),
        floor(32, size).spread(1),
        in_tree_tuned(size).spread(1),
        ours(size).spread(1),
    ]
}

/// The rows of the table in docs/benchmarks.md.
pub fn standard(size: usize) -> Vec<Case> {
    vec![
        floor(32, size).spread(10),
        in_tree_tuned(size).spread(10),
        ours(size).spread(10),
        ours_tuned(size).spread(10),
        floor(32, size).spread(1),
        in_tree_tuned(size).spread(1),
        ours(size).spread(1),
        ours_tuned(size).spread(1),
        alone(in_tree_tuned(20)),
        alone(ours(20)),
    ]
}

/// The slots of one instant, all due at once and spread over a minute, and the bare writes for the latter.
pub fn spread(size: usize) -> Vec<Case> {
    let bare = floor(32, size).spread(10);
    let bare =
        Case { name: "floor-spread/10".to_owned(), title: format!("{}, `spread: 1m`", bare.title), window: 1, ..bare };
    let plain = ours(size).spread(10);
    let spread = Case {
        name: "ours-spread/10".to_owned(),
        title: "this controller, default flags, `spread: 1m`".to_owned(),
        window: 1,
        ..plain.clone()
    };
    vec![bare, plain, spread]
}

/// The same slots without policies and with three.
pub fn policies(size: usize) -> Vec<Case> {
    let plain = ours(size).spread(10);
    let with = Case {
        name: "ours-policies/10".to_owned(),
        title: "this controller, default flags, three policies".to_owned(),
        policies: true,
        ..plain.clone()
    };
    vec![floor(32, size).spread(10), plain, with]
}

/// CronJobs that are due one at a time.
pub fn singles() -> Vec<Case> {
    vec![alone(in_tree_tuned(20)), alone(ours(20))]
}

/// For choosing the default of `--concurrent-cronjob-syncs`, beside bare writes with 32 and 64 in flight.
pub fn sweep(size: usize) -> Vec<Case> {
    let floors = [32, 64].map(|in_flight| floor(in_flight, size));
    let ours = [8, 16, 32, 64, 128].map(|syncs| ours_with(syncs, size));
    let cases: Vec<Case> = floors.into_iter().chain(ours).collect();
    [10, 1].into_iter().flat_map(|namespaces| cases.iter().map(move |case| case.clone().spread(namespaces))).collect()
}

/// The in-tree controller with its defaults: two minutes for a thousand.
pub fn slow() -> Vec<Case> {
    vec![Case { limit: Duration::from_secs(200), ..in_tree_default(1_000).spread(10) }]
}

/// Polling compared with watching, on the workload of the articles.
pub fn polling() -> Vec<Case> {
    let v1 = case("polling", "polling V1, qps 20, burst 30", Contender::Polling { qps: 20, burst: 30 }, 20);
    vec![few_of_many(ours(20)), few_of_many(in_tree_default(20)), few_of_many(v1)]
}

/// One small round of everything, for the ordinary tests.
pub fn small() -> Vec<Case> {
    let v1 = case("polling", "polling V1", Contender::Polling { qps: 1_000, burst: 1_000 }, 10);
    vec![floor(4, 20).spread(2), ours(20).spread(2), Case { due: 2, ..alone(ours(2)) }, v1.spread(1)]
}
