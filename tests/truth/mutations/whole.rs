//! Draws mutations of whole CronJobs and Jobs from a seed: of what is around a Job's spec.
//!
//! Guarantees: the same seed gives the same objects. Every path of the metadata, of a CronJob's spec, of its template's metadata and of the
//! status is mutated.

use serde_json::Value;

use super::draw::{self, Choice, Path, Rng};

/// The objects that are mutated.
fn bases(kind: &str) -> Vec<Value> {
    let documents = include_str!("whole.yaml").split("\n---\n");
    let all =
        documents.map(|text| serde_saphyr::from_str::<Value>(text).unwrap_or_else(|why| panic!("{why}:\n{text}")));
    all.filter(|object| object["kind"] == kind).collect()
}

/// Values that are worth a try at some paths only.
fn special(path: &str) -> &'static [&'static str] {
    match path {
        ".spec.schedule" => &[
            "",
            " ",
            "@daily",
            "@yearly",
            "@annually",
            "@midnight",
            "@reboot",
            "@every 1h",
            "@every 90s",
            "@every 0s",
            "@every -1h",
            "@every x",
            "@Daily",
            "* * * *",
            "* * * * * *",
            "*/5 * * * ?",
            "0 0 L * *",
            "0 0 1W * *",
            "0 0 * * 5#2",
            "H * * * *",
            "0 0 * * 7",
            "0 0 * * SUN-SAT",
            "0 0 * * SAT-SUN",
            "0 22-6 * * *",
            "0 24 * * *",
            "60 * * * *",
            "0 0 0 * *",
            "0 0 32 * *",
            "0 0 * 13 *",
            "0 0 * jan MON",
            "0-59/7 * * * *",
            "*/0 * * * *",
            "*/60 * * * *",
            "5/15 * * * *",
            "1,2,3 * * * *",
            ",1 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "-1 * * * *",
            "+1 * * * *",
            "1. * * * *",
            "TZ=UTC 0 0 * * *",
            "CRON_TZ=UTC 0 0 * * *",
            "TZ=UTC",
            "\t0 0 * * *",
            "0  0 * * *",
            "0\u{a0}0 * * *",
            "rate(1 day)",
            "cron(0 0 * * ? *)",
            "0 0 31 2 *",
            "\"0 0 * * *\"",
            "99999999999999999999 * * * *",
            "0x1 * * * *",
            "é * * * *",
        ],
        ".spec.timeZone" => &[
            "Etc/UTC",
            "UTC",
            "utc",
            "Local",
            "local",
            "America/New_York",
            "america/new_york",
            "Etc/GMT+2",
            "EST",
            "EST5EDT",
            "GMT+1",
            "UTC+1",
            "+01:00",
            "Europe/Kyiv",
            "Europe/Kiev",
            "../UTC",
            "/etc/localtime",
            "posix/UTC",
            " Europe/Paris",
            "Europe",
            "Zulu",
            "Asia/Calcutta",
            "US/Pacific-New",
            "Mars/Phobos",
            "Europe\\Paris",
            "Factory",
            "CET ",
        ],
        _ => &[],
    }
}

/// Each path, mutated `times` times.
pub fn sweep(seed: u64, times: usize) -> Vec<(String, Value)> {
    let mut rng = Rng::new(seed ^ 0x3f01e);
    let mut cases = Vec::new();
    for (kind, left_out) in [("CronJob", ".spec.jobTemplate.spec"), ("Job", ".spec")] {
        let bases = bases(kind);
        let is_meant = |path: &Path| {
            let text = path.text();
            !text.starts_with(left_out) && text != ".kind" && text != ".apiVersion" && text != ".spec"
        };
        for path in draw::paths(&format!("batch.v1.{kind}")).into_iter().filter(is_meant) {
            let mut choices = draw::choices(&path);
            let special = special(&path.text());
            let several = if special.is_empty() { times } else { times * 5 };
            // They are drawn as often as all others together.
            choices.extend(special.iter().map(|text| Choice::Set((*text).into())));
            for _ in 0..several {
                let chosen =
                    if choices.is_empty() { Choice::Remove } else { choices.swap_remove(rng.below(choices.len())) };
                let mut object = rng.pick(&bases).clone();
                let change = draw::apply(&mut object, &path, &chosen, &mut rng);
                cases.push((format!("{kind} {}: {change}", path.text()), object));
            }
        }
    }
    cases
}
