//! The lanes against a random caller.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;

use super::super::EventType;
use super::super::tests::{at, event};
use super::*;

fn write(object: u8, number: usize) -> Write {
    Write::new(event(&format!("cj{object}"), EventType::Normal, "R", &number.to_string(), at(0)))
}

fn number(write: &Write) -> usize {
    write.event.message.parse().unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u8),
    Next,
    /// The taken write at this index modulo their number.
    Done(usize),
    Sleep(usize, u64),
    Wake(u64),
    WakeAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..4).prop_map(Step::Push),
        6 => Just(Step::Next),
        3 => any::<usize>().prop_map(Step::Done),
        2 => (any::<usize>(), 0_u64..20).prop_map(|(which, seconds)| Step::Sleep(which, seconds)),
        1 => (0_u64..10).prop_map(Step::Wake),
        1 => Just(Step::WakeAll),
    ]
}

proptest! {
    #[test]
    fn no_event_is_lost_and_each_objects_events_stay_in_order(steps in proptest::collection::vec(step(), 0..300)) {
        let mut now = Instant::now();
        let mut lanes = Lanes::default();
        let mut taken: Vec<Write> = Vec::new();
        let (mut pushed, mut finished) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Push(object) => {
                    lanes.push(write(object, pushed));
                    pushed += 1;
                }
                Step::Next => taken.extend(lanes.next(16)),
                Step::Done(which) if !taken.is_empty() => {
                    let write = taken.remove(which % taken.len());
                    lanes.done(&write.object);
                    finished.push(write);
                }
                Step::Sleep(which, seconds) if !taken.is_empty() => {
                    let write = taken.remove(which % taken.len());
                    lanes.sleep(write, now + Duration::from_secs(seconds));
                }
                Step::Wake(seconds) => {
                    now += Duration::from_secs(seconds);
                    lanes.wake(now);
                    prop_assert!(lanes.next_wake().is_none_or(|at| at > now));
                }
                Step::WakeAll => lanes.wake_all(),
                Step::Done(_) | Step::Sleep(..) => {}
            }
            prop_assert_eq!(lanes.pending(), pushed - finished.len());
            let mut out: Vec<_> = taken.iter().map(|write| &write.object).collect();
            out.sort_by_key(|object| object.0.name.clone());
            out.dedup();
            prop_assert_eq!(out.len(), taken.len(), "two writes of one object are out");
        }
        // Every pending write comes out in the end.
        lanes.wake_all();
        loop {
            taken.extend(lanes.next(16));
            let Some(write) = taken.pop() else { break };
            lanes.done(&write.object);
            finished.push(write);
        }
        prop_assert_eq!((lanes.pending(), finished.len(), lanes.behind.len()), (0, pushed, 0));
        for object in 0..4 {
            let name = format!("cj{object}");
            let of_object = finished.iter().filter(|write| *write.object.0.name == *name);
            prop_assert!(of_object.map(number).is_sorted());
        }
    }
}

/// Four places; each object has one write.
#[test]
fn namespaces_that_are_slow_leave_a_quarter_of_the_places_to_others() {
    let of = |namespace: &str, object: u8| {
        let mut write = write(object, 0);
        write.event.namespace = namespace.into();
        write
    };
    let mut lanes = Lanes::default();
    (0..10).for_each(|object| lanes.push(of("hangs", object)));
    let mut out: Vec<Write> = (0..4).filter_map(|_| lanes.next(4)).collect();
    assert_eq!(out.len(), 4, "nothing is known");
    for write in &mut out {
        lanes.answered(write, SLOW);
        lanes.done(&write.object);
    }
    (10..12).for_each(|object| lanes.push(of("calm", object)));
    let mut out: Vec<Write> = std::iter::from_fn(|| lanes.next(4)).collect();
    let namespaces: Vec<&str> = out.iter().map(|write| &*write.event.namespace).collect();
    assert_eq!(namespaces, ["calm", "calm", "hangs", "hangs", "hangs"]);
    lanes.answered(&mut out[2], Duration::from_millis(5));
    lanes.done(&out[2].object);
    assert_eq!(std::iter::from_fn(|| lanes.next(4)).count(), 3, "it is answered again");
}
