#![allow(clippy::unwrap_used)]

use super::*;
use crate::api::ObjectName;
use crate::cli::explain::State;
use crate::ui::model::tests::row;
use crate::ui::objects::About;

#[test]
fn groups_with_problems_are_first_and_a_cron_job_with_two_images_is_in_both() {
    let rows = [
        ("a", "green", &["x:1"][..], State::Waiting),
        ("b", "green", &["x:1", "y:1"], State::Waiting),
        ("c", "red", &["y:1"], State::Failing),
        ("d", "", &[], State::Waiting),
    ];
    let rows = rows.into_iter().map(|(name, team, images, state)| {
        let mut row = row(name);
        let labels =
            if team.is_empty() { Box::default() } else { Box::new([("team".into(), team.into())]) as Box<[_]> };
        row.about = Arc::new(About { labels, images: images.iter().map(|image| Box::from(*image)).collect() });
        (row.state, row.urgency) = (state, state.urgency());
        (ObjectName::new("shop", name), Arc::new(row))
    });
    let model = Model { rows: rows.collect(), version: 1 };
    let now = "2026-11-22T10:00:00Z".parse().unwrap();
    for (by, want) in [
        ("namespace", &[(Some("shop"), "shop", 4)][..]),
        ("label:team", &[(Some("red"), "team=red", 1), (Some("green"), "team=green", 2), (None, "!team", 1)]),
        ("image", &[(Some("y:1"), "y:1", 2), (Some("x:1"), "x:1", 2), (None, "!", 1)]),
    ] {
        let found = groups(&model, &By::parse(by).unwrap(), &Selection::default(), now).unwrap();
        let found: Vec<_> =
            found.groups.iter().map(|one| (one.value.as_deref(), &*one.filter, one.cron_jobs)).collect();
        assert_eq!(found, want, "{by}");
    }
    assert_eq!(label_keys(&model), ["team"]);
}
