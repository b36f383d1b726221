use super::*;

/// Every state with its words, in the order of the urgencies.
const ALL: [(State, &str, Urgency); 22] = [
    (State::Overdue, "overdue", Urgency::Overdue),
    (State::Missed, "missed", Urgency::Overdue),
    (State::NotStarted, "not started", Urgency::Overdue),
    (State::UnknownTimeZone, "unknown time zone", Urgency::Stuck),
    (State::UnparseableSchedule, "bad schedule", Urgency::Stuck),
    (State::NoController, "no controller", Urgency::Stuck),
    (State::BadPolicy, "bad policy", Urgency::Stuck),
    (State::NeverFires, "never runs", Urgency::Stuck),
    (State::Paused, "paused", Urgency::Stuck),
    (State::NameTaken, "name taken", Urgency::Stuck),
    (State::BadTemplate, "bad template", Urgency::Stuck),
    (State::Blocked, "blocked", Urgency::Blocked),
    (State::RunStuck, "run stuck", Urgency::Blocked),
    (State::Failing, "failing", Urgency::Failed),
    (State::NeverEnds, "never ends", Urgency::Failed),
    (State::PilesUp, "piles up", Urgency::Growing),
    (State::Starting, "starting", Urgency::Fine),
    (State::Waiting, "on schedule", Urgency::Fine),
    (State::SlotsUnknown, "slots not known", Urgency::Fine),
    (State::Frozen, "frozen", Urgency::Stopped),
    (State::Suspended, "suspended", Urgency::Stopped),
    (State::BeingDeleted, "being deleted", Urgency::Stopped),
];

#[test]
fn words_and_urgency_follow_from_the_state() {
    for (state, label, urgency) in ALL {
        assert_eq!((state.label(), state.urgency()), (label, urgency), "{state:?}");
    }
    assert!(ALL.windows(2).all(|pair| pair[0].2 <= pair[1].2));
}

/// What the page about the plugin says of a state, and by which metrics it shows.
#[test]
fn documents_have_the_words_of_every_state_and_metrics_that_exist() {
    let plugin = include_str!("../../../../docs/kubectl-plugin.md");
    let metrics = include_str!("../../../../docs/reference/metrics.md");
    let mut named = 0;
    for (state, label, _) in ALL {
        let json = serde_json::to_value(state).unwrap_or_default();
        let begin = format!("| `{}` | {label} | ", json.as_str().unwrap_or_default());
        let row = plugin.lines().find(|line| line.starts_with(&begin)).unwrap_or_default();
        let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
        assert!(cells.len() >= 3, "no row begins with {begin:?}");
        for metric in cells.get(3).unwrap_or(&"").split('`').skip(1).step_by(2).filter(|word| word.contains('_')) {
            let is_reason = cells[3].contains(&format!("of `{metric}`"));
            let name = format!("`cronjob_controller_cronjob_{metric}`");
            assert!(is_reason || metrics.contains(&name), "{label}: there is no metric {name}");
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}
