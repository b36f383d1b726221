//! Sets of completion indexes as Indexed Jobs write them: `0-2,5`. Pure.
//!
//! Guarantees: [`parse`] reverses [`fn@format`]. Of a malformed text, the valid part is used.
//!
//! Matches `parseIndexesFromString` and `orderedIntervals.String` in upstream `pkg/controller/job/indexed_job_utils.go`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Parses a set of indexes below `completions`.
pub fn parse(text: &str, completions: u32) -> BTreeSet<u32> {
    let interval = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?.min(completions.checked_sub(1)?))
    };
    text.split(',').filter_map(interval).flatten().filter(|index| *index < completions).collect()
}

/// Formats a set; two adjacent indexes become a pair, three or more a range.
pub fn format(indexes: &BTreeSet<u32>) -> String {
    let mut intervals: Vec<(u32, u32)> = Vec::new();
    for &index in indexes {
        match intervals.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => intervals.push((index, index)),
        }
    }
    let mut text = String::new();
    for (first, last) in intervals {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match last - first {
            0 => write!(text, "{comma}{first}"),
            1 => write!(text, "{comma}{first},{last}"),
            _ => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

#[cfg(test)]
mod tests;
