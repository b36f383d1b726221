//! The tables.

use std::collections::BTreeMap;

use super::Pair;

impl Pair {
    fn ratio(&self) -> f64 {
        self.theirs / self.ours
    }
}

/// The time of a hundred times add, get and done, in nanoseconds, with or without metrics.
pub struct Queue {
    pub metrics: bool,
    pub ours: f64,
    pub theirs: f64,
}

pub fn print(pairs: &[Pair], queues: &[Queue]) {
    let mut classes: BTreeMap<_, Vec<&Pair>> = BTreeMap::new();
    for pair in pairs {
        classes.entry(pair.class).or_default().push(pair);
    }
    println!("next instant, ns (medians), and how many times faster than robfig/cron (v3.0.1)");
    println!(
        "{:34} {:>7} {:>9} {:>8} {:>9} {:>8} {:>8}",
        "class", "vectors", "robfig", "ours", "geo mean", "p10", "worst"
    );
    for (class, pairs) in &classes {
        row(&class.title(), pairs);
    }
    let of_vectors = |pair: &&Pair| !matches!(pair.class, super::Class::Frequent(_));
    let all: Vec<&Pair> = pairs.iter().filter(of_vectors).collect();
    row("all vectors", &all);

    let mut worst = all;
    worst.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    println!("\nthe slowest beside robfig:");
    for pair in worst.iter().take(15) {
        let (schedule, from) = (&pair.vector.schedule, pair.vector.from);
        println!("  {:5.2}  {:8.1} {:8.1} ns  {schedule}  from {from}", pair.ratio(), pair.theirs, pair.ours);
    }
    println!("\nqueue, add + get + done a hundred times, ns");
    for Queue { metrics, ours, theirs } in queues {
        let title = if *metrics { "with metrics" } else { "without metrics" };
        println!("  {title}: client-go {theirs:.0}, ours {ours:.0}, {:.2} times faster", theirs / ours);
    }
}

fn row(title: &str, pairs: &[&Pair]) {
    let quantile = |of: fn(&Pair) -> f64, q: f64| {
        let mut values: Vec<f64> = pairs.iter().map(|pair| of(pair)).collect();
        values.sort_by(f64::total_cmp);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index into a small list")]
        let at = (q * (values.len() - 1) as f64) as usize;
        values[at]
    };
    let mean = (pairs.iter().map(|pair| pair.ratio().ln()).sum::<f64>() / pairs.len() as f64).exp();
    println!(
        "{title:34} {:7} {:9.1} {:8.1} {mean:9.2} {:8.2} {:8.2}",
        pairs.len(),
        quantile(|pair| pair.theirs, 0.5),
        quantile(|pair| pair.ours, 0.5),
        quantile(Pair::ratio, 0.1),
        quantile(Pair::ratio, 0.0),
    );
}
