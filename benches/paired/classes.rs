//! The classes of vectors by their kind of work.

use chrono::TimeDelta;
use schedule::{Schedule, Zone};

use super::Vector;

/// Classes of vectors, by what makes a search long. The first match counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `@every`.
    Every,
    /// Nothing within five years.
    Never,
    /// The zone's offset changes between the day before and the day after the answer.
    ChangeOfOffset,
    /// In a zone with another offset than UTC's, not every day.
    ZonedDays,
    /// In a zone with another offset than UTC's, every day.
    Zoned,
    /// Some days or months only.
    Days,
    /// Minutes or hours as lists or ranges.
    List,
    /// Minutes or hours with a step.
    Step,
    /// Stars and single values.
    Plain,
    /// One of the frequent schedules.
    Frequent(&'static str),
}

impl Class {
    pub fn title(self) -> String {
        match self {
            Self::Every => "@every".to_owned(),
            Self::Never => "never".to_owned(),
            Self::ChangeOfOffset => "zoned, offset changes".to_owned(),
            Self::ZonedDays => "zoned, some days".to_owned(),
            Self::Zoned => "zoned, all days".to_owned(),
            Self::Days => "some days".to_owned(),
            Self::List => "lists and ranges".to_owned(),
            Self::Step => "steps".to_owned(),
            Self::Plain => "stars and values".to_owned(),
            Self::Frequent(schedule) => schedule.to_owned(),
        }
    }
}

pub fn classify(vector: &Vector) -> Class {
    let spec = &vector.schedule;
    if spec.contains("@every") {
        return Class::Every;
    }
    let schedule = Schedule::parse_standard(spec, Zone::UTC).expect("a valid vector parses");
    let Some(next) = schedule.next(vector.from) else { return Class::Never };

    let zone = spec.split_once(' ').and_then(|(prefix, _)| prefix.split_once('=')).map_or("UTC", |(_, zone)| zone);
    let zone = Zone::load(zone, Zone::UTC).expect("the zone of a valid vector exists");
    let day = TimeDelta::days(1);
    let instants = [vector.from - day, vector.from, next, next + day];
    let offsets = instants.map(|t| zone.at(t).offset().local_minus_utc());
    let fields: Vec<&str> = spec.split_whitespace().filter(|field| !field.contains("TZ=")).collect();
    let some_days = match &fields[..] {
        [_, _, days @ ..] => days.iter().any(|field| !matches!(*field, "*" | "?")),
        _ => !spec.contains("@hourly"),
    };
    let times = &fields[..fields.len().min(2)];
    if offsets.iter().any(|offset| *offset != offsets[0]) {
        Class::ChangeOfOffset
    } else if offsets[0] != 0 && some_days {
        Class::ZonedDays
    } else if offsets[0] != 0 {
        Class::Zoned
    } else if some_days {
        Class::Days
    } else if times.iter().any(|field| field.contains([',', '-'])) {
        Class::List
    } else if times.iter().any(|field| field.contains('/')) {
        Class::Step
    } else {
        Class::Plain
    }
}
