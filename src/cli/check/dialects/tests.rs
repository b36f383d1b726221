use super::*;

#[test]
fn schedule_that_another_reader_takes_otherwise_is_found() {
    let refused = "kube-state-metrics from 2.19 on refuses";
    let rows: [(&str, &str, &[&str]); 19] = [
        ("hourly", "0 * * * *", &[]),
        ("days alone", "0 0 13 * *", &[]),
        ("weekdays alone", "0 0 * * 5", &[]),
        (
            "a day and a weekday",
            "0 0 13 * 5",
            &[
                "kube-state-metrics from 2.19 on takes only days that the third field (13) and the fifth (5) both name, so its \
               kube_cronjob_next_schedule_time is later than the next run",
            ],
        ),
        (
            "a step on the days, and a weekday",
            "0 0 */2 * 1",
            &[
                "Vixie cron and cronie, and kube-state-metrics from 2.19 on, take only days that the third and the fifth field \
               both name, because the third (*/2) begins with a star; Kubernetes takes the days that one of them names",
            ],
        ),
        ("a day, and a step on the weekdays", "0 0 1 * */2", &["because the fifth (*/2) begins with a star"]),
        ("a step of 1 is a star for all", "0 0 */1 * 1", &[]),
        (
            "a step as long as the hour",
            "*/60 * * * *",
            &[
                "kube-state-metrics from 2.19 on refuses */60, whose step is not less than the 60 numbers of its range: 2.19.0 \
               crashes, and later ones may have no kube_cronjob_next_schedule_time; it matches 0 alone, so write 0",
            ],
        ),
        ("a step as long as the day", "0 */24 * * *", &["it matches 0 alone, so write 0"]),
        ("the longest step that is taken", "*/59 */23 */30 */11 *", &[]),
        ("a step as long as the month", "0 0 */31 * *", &["refuses */31"]),
        ("a step as long as the year", "0 0 1 */12 *", &["refuses */12"]),
        ("a step as long as the week is taken", "0 0 * * */7", &[]),
        ("in a list", "5,*/60 * * * *", &[refused]),
        ("from a number on", "5/55 * * * *", &["the 55 numbers of its range"]),
        ("from a number on, twice", "5/54 * * * *", &[]),
        ("in a range of names", "0 0 1 JAN-MAR/3 *", &["refuses jan-mar/3"]),
        ("both", "*/60 0 13 * 5", &["both name", refused]),
        ("a descriptor", "@daily", &[]),
    ];
    for (sentence, text, want) in rows {
        let found = judge(text);
        let same =
            found.len() == want.len() && found.iter().zip(want).all(|(fault, part)| fault.message.contains(part));
        assert!(same, "{sentence}: {found:#?}");
        assert!(found.iter().all(|fault| fault.code == Code::OtherDialect && fault.field == "spec.schedule"));
    }
}
