use super::*;

/// Every state with its words, in the order of the urgencies.
const ALL: [(State, &str, Urgency); 20] = [
    (State::Overdue, "overdue", Urgency::Overdue),
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
