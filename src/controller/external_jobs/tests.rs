use super::*;
use crate::controller::tests::objects::time;

fn at(clock: &str) -> DateTime<Utc> {
    time(&format!("2026-03-02T{clock}Z"))
}

enum Step {
    Begin(&'static str),
    HandedOver(&'static str),
    Creating(&'static str),
    Appeared(&'static str, bool),
    AlreadyThere(&'static str, bool),
    Forget,
}

#[test]
fn job_is_external_if_only_another_controller_can_have_created_it() {
    use Step::{AlreadyThere, Appeared, Begin, Creating, Forget, HandedOver};
    let began = || Begin("10:00:00");
    let table: Vec<(&str, Vec<Step>)> = vec![
        ("who does not work knows nothing", vec![Appeared("10:05:00", false)]),
        ("a Job that this process did not request", vec![began(), Appeared("10:01:00", true)]),
        ("it counts once", vec![began(), Appeared("10:01:00", true), Appeared("10:01:00", false)]),
        ("so does each", vec![began(), Appeared("10:01:00", true), Appeared("10:02:00", true)]),
        ("a predecessor's", vec![began(), Appeared("09:59:00", false), Appeared("10:00:00", false)]),
        ("a predecessor's whose clock was ahead", vec![began(), Appeared("10:00:30", false)]),
        ("our own", vec![began(), Creating("10:01:00"), Appeared("10:01:00", false)]),
        (
            "our own of a slot before, shown late",
            vec![began(), Creating("10:01:00"), Creating("10:02:00"), Appeared("10:01:00", false)],
        ),
        (
            "there before our first request, shown afterwards",
            vec![began(), Creating("10:01:00"), AlreadyThere("10:01:00", true), Appeared("10:01:00", false)],
        ),
        (
            "shown between the decision and the request",
            vec![began(), Appeared("10:01:00", true), Creating("10:01:00"), AlreadyThere("10:01:00", false)],
        ),
        (
            "there at the second request: the first may have made it",
            vec![began(), Creating("10:01:00"), Creating("10:01:00"), AlreadyThere("10:01:00", false)],
        ),
        (
            "there at the first request, of a predecessor's slot",
            vec![began(), Creating("10:00:00"), AlreadyThere("10:00:00", false)],
        ),
        (
            "the one before's, of a CronJob that was handed over",
            vec![began(), HandedOver("10:04:50"), Appeared("10:05:00", false), Appeared("10:06:00", true)],
        ),
        (
            "there at the first request for one that was handed over",
            vec![began(), HandedOver("10:04:50"), Creating("10:05:00"), AlreadyThere("10:05:00", false)],
        ),
        ("a new CronJob of the same name", vec![began(), Creating("10:05:00"), Forget, Appeared("10:05:00", true)]),
    ];
    for (sentence, steps) in table {
        let (foreign, mut account) = (ExternalJobs::default(), None);
        for step in steps {
            match step {
                Begin(now) => foreign.begin(at(now)),
                HandedOver(now) => account = Some(Account::handed_over(at(now))),
                Creating(slot) => Account::creating(&mut account, at(slot)),
                Appeared(slot, want) => {
                    assert_eq!(foreign.appeared(&mut account, at(slot)), want, "{sentence}: {slot}");
                }
                AlreadyThere(slot, want) => {
                    assert_eq!(foreign.already_there(&mut account, at(slot)), want, "{sentence}: {slot}");
                }
                Forget => account = None,
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_one_warning_in_ten_minutes_and_it_says_how_many_there_were() {
    let foreign = ExternalJobs::default();
    assert_eq!([foreign.tell(), foreign.tell(), foreign.tell()], [Some(1), None, None]);
    tokio::time::advance(TOLD_EVERY).await;
    assert_eq!([foreign.tell(), foreign.tell()], [Some(3), None]);
}
