//! A brute force over local wall-clock time: schedules of several lines with `dst: once`, exclusions and bounds have exactly
//! the slots that a walk over all dates of a year finds.
//!
//! It shares no code with the crate: days are chosen by predicates on dates, and instants come from chrono-tz. `ORACLE_CASES`
//! is the number of random schedules, each in a random zone and three random years; `make oracle` compares 10,000. A failure
//! prints its case.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc, Weekday};
use chrono_tz::{TZ_VARIANTS, Tz};
use schedule::{Calendar, ClockChanges, Exclusions, Lines, Schedule, Zone};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

type Times = (&'static str, &'static [u32]);
type Dates = (&'static str, fn(NaiveDate) -> bool);

const MINUTES: [Times; 5] = [("0", &[0]), ("30", &[30]), ("*/20", &[0, 20, 40]), ("15,45", &[15, 45]), ("59", &[59])];

const HOURS: [Times; 7] = [
    ("0", &[0]),
    ("2", &[2]),
    ("1-3", &[1, 2, 3]),
    ("0,23", &[0, 23]),
    ("9-17/4", &[9, 13, 17]),
    ("*/6", &[0, 6, 12, 18]),
    ("23", &[23]),
];

const DAYS_OF_MONTH: [Dates; 8] = [
    ("*", |_| true),
    ("*", |_| true),
    ("1,31", |date| matches!(date.day(), 1 | 31)),
    ("L", |date| days_left(date) == 0),
    ("L-3", |date| days_left(date) == 3),
    ("15W", |date| nearest_working_day(date, 15) == Some(date)),
    ("31W", |date| nearest_working_day(date, 31) == Some(date)),
    ("LW", |date| nearest_working_day(date, date.day() + days_left(date)) == Some(date)),
];

const DAYS_OF_WEEK: [Dates; 6] = [
    ("*", |_| true),
    ("*", |_| true),
    ("1-5", |date| !is_weekend(date)),
    ("FRI#3", |date| date.weekday() == Weekday::Fri && (15..=21).contains(&date.day())),
    ("5L", |date| date.weekday() == Weekday::Fri && days_left(date) < 7),
    ("0,SUN#5", |date| date.weekday() == Weekday::Sun),
];

const EXCLUSIONS: [Dates; 6] = [
    ("Sat", |date| date.weekday() == Weekday::Sat),
    ("12-25", |date| (date.month(), date.day()) == (12, 25)),
    ("12-24/01-06", |date| (date.month(), date.day()) >= (12, 24) || (date.month(), date.day()) <= (1, 6)),
    ("02-29", |date| (date.month(), date.day()) == (2, 29)),
    ("03-20/04-02", |date| (date.month(), date.day()) >= (3, 20) && (date.month(), date.day()) <= (4, 2)),
    ("2010-06-01/2012-02-29", |date| {
        let [first, last] = [(2010, 6, 1), (2012, 2, 29)].map(|(y, m, d)| NaiveDate::from_ymd_opt(y, m, d).unwrap());
        (first..=last).contains(&date)
    }),
];

fn is_weekend(date: NaiveDate) -> bool {
    matches!(date.weekday(), Weekday::Sat | Weekday::Sun)
}

fn days_left(date: NaiveDate) -> u32 {
    (1..31).take_while(|days| (date + Days::new(*days)).month() == date.month()).count().try_into().unwrap()
}

/// The Monday to Friday of the date's month that is nearest to its day `day`.
fn nearest_working_day(date: NaiveDate, day: u32) -> Option<NaiveDate> {
    let wanted = date.with_day(day)?;
    let near = |days: i64| Some(wanted + TimeDelta::days(days)).filter(|near| near.month() == date.month());
    [0, -1, 1, -2, 2].into_iter().filter_map(near).find(|near| !is_weekend(*near))
}

/// The first instant at which the clocks show a local time, or the end of the gap that has it.
fn first_instant(tz: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let minutes = (0..2 * 24 * 60).map(|minutes| tz.from_local_datetime(&(local + TimeDelta::minutes(minutes))));
    minutes.into_iter().find_map(chrono::LocalResult::earliest).unwrap().to_utc()
}

fn is_shown(tz: Tz, date: NaiveDate) -> bool {
    (0..24).any(|hour| tz.from_local_datetime(&date.and_hms_opt(hour, 0, 0).unwrap()).earliest().is_some())
}

struct Line {
    minutes: &'static [u32],
    hours: &'static [u32],
    of_month: Dates,
    of_week: Dates,
}

impl Line {
    fn has(&self, date: NaiveDate) -> bool {
        let (of_month, of_week) = ((self.of_month.1)(date), (self.of_week.1)(date));
        if self.of_month.0 == "*" || self.of_week.0 == "*" { of_month && of_week } else { of_month || of_week }
    }

    fn times(&self) -> impl Iterator<Item = NaiveTime> {
        let time =
            |hour: u32| self.minutes.iter().map(move |minute| NaiveTime::from_hms_opt(hour, *minute, 0).unwrap());
        self.hours.iter().flat_map(move |hour| time(*hour))
    }
}

struct Case {
    text: String,
    tz: Tz,
    lines: Vec<Line>,
    single: Option<NaiveDateTime>,
    excluded: Vec<Dates>,
    bounds: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Case {
    fn draw(random: &mut Random, year: i32) -> Self {
        let tz = random.pick(&TZ_VARIANTS);
        let (mut text, mut lines) = (String::new(), Vec::new());
        for _ in 0..=random.below(3) {
            let (minutes, hours) = (random.pick(&MINUTES), random.pick(&HOURS));
            let (of_month, of_week) = (random.pick(&DAYS_OF_MONTH), random.pick(&DAYS_OF_WEEK));
            writeln!(text, "{} {} {} * {}", minutes.0, hours.0, of_month.0, of_week.0).unwrap();
            lines.push(Line { minutes: minutes.1, hours: hours.1, of_month, of_week });
        }
        let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap().and_time(NaiveTime::MIN);
        let single =
            (random.below(3) == 0).then(|| first + TimeDelta::minutes(random.below(500_000).try_into().unwrap()));
        if let Some(single) = single {
            writeln!(text, "@at {}", single.format("%Y-%m-%dT%H:%M")).unwrap();
        }
        let excluded = (0..random.below(4)).map(|_| random.pick(&EXCLUSIONS)).collect();
        let mut minute = || first.and_utc() + TimeDelta::minutes(random.below(525_600).try_into().unwrap());
        let (one, other) = (minute(), minute());
        let bounds = (random.below(3) == 0).then(|| (one.min(other), one.max(other)));
        Self { text, tz, lines, single, excluded, bounds }
    }

    fn schedule(&self) -> Schedule {
        let excluded: Vec<&str> = self.excluded.iter().map(|(text, _)| *text).collect();
        let exclude =
            if excluded.is_empty() { Ok(Exclusions::default()) } else { Exclusions::parse(&excluded.join(",")) };
        let calendar = Calendar {
            lines: Some(Lines::parse(&self.text).unwrap()),
            clock_changes: ClockChanges::Once,
            exclude: exclude.unwrap(),
            not_before: self.bounds.map(|(first, _)| first),
            not_after: self.bounds.map(|(_, last)| last),
        };
        let zone = Zone::load(self.tz.name(), Zone::UTC).unwrap();
        Schedule::parse_standard("@daily", zone).unwrap().with_calendar(&calendar).unwrap()
    }

    /// The slots of the dates of a year and of the days beside it.
    fn slots(&self, year: i32) -> BTreeSet<DateTime<Utc>> {
        let first = NaiveDate::from_ymd_opt(year, 1, 1).unwrap() - Days::new(3);
        let mut slots = BTreeSet::new();
        let is_open = |date: NaiveDate| is_shown(self.tz, date) && !self.excluded.iter().any(|(_, has)| has(date));
        for date in first.iter_days().take(372).filter(|date| is_open(*date)) {
            let times = self.lines.iter().filter(|line| line.has(date)).flat_map(Line::times);
            let single = self.single.filter(|single| single.date() == date).map(|single| single.time());
            slots.extend(times.chain(single).map(|time| first_instant(self.tz, date.and_time(time))));
        }
        slots.retain(|slot| self.bounds.is_none_or(|(first, last)| (first..=last).contains(slot)));
        slots
    }
}

#[test]
fn schedules_with_a_calendar_have_the_slots_of_a_walk_over_all_dates() {
    let cases = std::env::var("ORACLE_CASES").map_or(200, |cases| cases.parse().unwrap());
    let (mut compared, mut years) = (0, 0);
    for number in 0..cases {
        let mut random = Random(number);
        let years_of_case = [0; 3].map(|_| 1990 + i32::try_from(random.below(47)).unwrap());
        let case = Case::draw(&mut random, years_of_case[0]);
        let schedule = case.schedule();
        for year in years_of_case {
            let start = Utc.with_ymd_and_hms(year, 1, 1, 0, 0, 0).unwrap();
            let end = Utc.with_ymd_and_hms(year + 1, 1, 1, 0, 0, 0).unwrap();
            let wanted: Vec<_> = case.slots(year).into_iter().filter(|slot| (start..end).contains(slot)).collect();
            let before = start - TimeDelta::seconds(1);
            let found = std::iter::successors(schedule.next_after(before), |slot| schedule.next_after(*slot));
            let found: Vec<_> = found.take_while(|slot| *slot < end).collect();
            let differs = wanted.iter().zip(&found).find(|(wanted, found)| wanted != found);
            let Case { text, tz, bounds, .. } = &case;
            let excluded: Vec<&str> = case.excluded.iter().map(|(text, _)| *text).collect();
            assert!(
                wanted == found,
                "case {number}, {year} in {tz}: {text:?}, without {excluded:?}, in {bounds:?}: wanted and found {differs:?}, {} \
                 and {} slots",
                wanted.len(),
                found.len(),
            );
            compared += found.len();
            years += 1;
        }
    }
    println!("{cases} schedules, {years} years, {compared} slots");
    assert!(compared > cases.try_into().unwrap(), "{compared} slots");
}
