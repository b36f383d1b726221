//! Makes the answers of two servers comparable. UIDs, resource versions, times of the run and generated suffixes become
//! names of their first occurrence, so that equal values stay equal and different ones different.
//!
//! Values that the script itself sets (a UID of zeros, a time years ago) stay unchanged. The resource version of a list
//! or a bookmark is the store's and increases with every client's writes: it becomes `<rv>`. Ages in table cells count
//! as times.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

/// The values seen so far in one scenario.
pub struct Normalizer {
    /// The time of the run; nearby times are replaced.
    now: DateTime<Utc>,
    step: usize,
    new_in_step: usize,
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
}

impl Normalizer {
    pub fn new(now: DateTime<Utc>) -> Self {
        Self { now, step: 0, new_in_step: 0, uids: BTreeMap::new(), versions: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// One answer's body. `base` is the generateName of the request.
    pub fn answer(&mut self, step: usize, base: Option<&str>, body: Value) -> Value {
        self.step = step;
        self.new_in_step = 0;
        // A refused name is recorded as well.
        if let (Some(base), Some(Value::String(name))) = (base, body.pointer("/details/name")) {
            self.learn_name(base, name);
        }
        self.learn_names(&body);
        self.walk("", body, false)
    }

    /// A header's value, after the body of its answer.
    pub fn header(&mut self, value: &str) -> String {
        self.text("", value, false)
    }

    fn mark(&mut self) -> String {
        self.new_in_step += 1;
        format!("{}.{}", self.step, self.new_in_step)
    }

    fn learn_name(&mut self, base: &str, name: &str) {
        // Longer bases are truncated, so that the name has at most 63 characters.
        let base = base.get(..58).unwrap_or(base);
        let suffix = name.strip_prefix(base).unwrap_or_default();
        let is_generated = suffix.len() == 5 && suffix.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b));
        if is_generated && !self.names.contains_key(name) {
            let mark = self.mark();
            self.names.insert(name.to_owned(), format!("{base}<suffix {mark}>"));
        }
    }

    fn learn_names(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_names(item)),
            Value::Object(map) => {
                if let (Some(Value::String(prefix)), Some(Value::String(name))) =
                    (map.get("generateName"), map.get("name"))
                {
                    self.learn_name(prefix, name);
                }
                map.values().for_each(|item| self.learn_names(item));
            }
            _ => {}
        }
    }

    fn walk(&mut self, key: &str, value: Value, is_stored: bool) -> Value {
        match value {
            Value::Array(mut items) => {
                if key == "managedFields" {
                    // The servers order them by time first, so by whether a second passed in between.
                    items.sort_by_cached_key(|item| {
                        format!("{}{}{}", item["operation"], item["manager"], item["subresource"])
                    });
                }
                let is_cells = key == "cells";
                Value::Array(
                    items
                        .into_iter()
                        .map(|item| match item {
                            Value::String(text) if is_cells && is_age(&text) => json!("<age>"),
                            other => self.walk("", other, false),
                        })
                        .collect(),
                )
            }
            Value::Object(map) => {
                let is_bookmark = map.get("type").is_some_and(|t| t == "BOOKMARK");
                let is_stored = map.contains_key("name") && !is_bookmark;
                Value::Object(
                    map.into_iter()
                        .map(|(key, value)| {
                            let value = self.walk(&key, value, is_stored);
                            // Managed fields have uids in their keys.
                            (self.replace_uids(&key), value)
                        })
                        .collect(),
                )
            }
            Value::String(text) => Value::String(self.text(key, &text, is_stored)),
            other => other,
        }
    }

    fn text(&mut self, key: &str, text: &str, is_stored: bool) -> String {
        if key == "resourceVersion" && !text.is_empty() {
            return if is_stored { self.version(text) } else { "<rv>".to_owned() };
        }
        if key == "continue"
            && let Some(token) = continue_token(text)
        {
            return token;
        }
        if let Ok(time) = DateTime::parse_from_rfc3339(text)
            && self.is_of_the_run(time.to_utc())
        {
            return if text.contains('.') { "<time with fraction>" } else { "<time>" }.to_owned();
        }
        let mut text = self.replace_uids(text);
        for (name, normal) in &self.names {
            if text.contains(name.as_str()) {
                text = text.replace(name.as_str(), normal);
            }
        }
        if text.contains("resourceVersion") && text.contains('{') {
            text = self.quoted_object(&text);
        }
        if text.contains("esource version") || text.contains("ResourceVersion in") {
            text = self.replace_versions(&text);
        }
        text
    }

    fn version(&mut self, text: &str) -> String {
        if let Some(known) = self.versions.get(text) {
            return known.clone();
        }
        let symbol = format!("<rv {}>", self.mark());
        self.versions.insert(text.to_owned(), symbol.clone());
        symbol
    }

    fn replace_uids(&mut self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(c) = rest.chars().next() {
            // A run of letters and digits is skipped as a whole, so that a UID is found only at its start.
            let run = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len()).max(c.len_utf8());
            let taken = match rest.get(..36) {
                Some(uid) if is_uid(uid) && !uid.starts_with("00000000-") => {
                    let symbol = self.uid(uid);
                    out.push_str(&symbol);
                    36
                }
                _ => {
                    out.push_str(&rest[..run]);
                    run
                }
            };
            rest = &rest[taken..];
        }
        out
    }

    fn uid(&mut self, uid: &str) -> String {
        if let Some(known) = self.uids.get(uid) {
            return known.clone();
        }
        let symbol = format!("<uid {}>", self.mark());
        self.uids.insert(uid.to_owned(), symbol.clone());
        symbol
    }

    /// Messages quote whole objects: their times and versions are normalised as well.
    fn quoted_object(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find("Z\"").or_else(|| rest.find("Z\\\"")) {
            let time = at.checked_sub(19).and_then(|start| rest.get(start..=at));
            match time.and_then(|time| DateTime::parse_from_rfc3339(time).ok()) {
                Some(time) if self.is_of_the_run(time.to_utc()) => {
                    out.push_str(&rest[..at - 19]);
                    out.push_str("<time>");
                }
                _ => out.push_str(&rest[..=at]),
            }
            rest = &rest[at + 1..];
        }
        let text = out + rest;
        let (mut out, mut rest) = (String::new(), text.as_str());
        let marks = ["resourceVersion\":\"", "resourceVersion\\\":\\\""];
        while let Some(end) = marks.iter().filter_map(|mark| rest.find(mark).map(|at| at + mark.len())).min() {
            out.push_str(&rest[..end]);
            rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_digit());
            out.push_str("<rv>");
        }
        out + rest
    }

    fn is_of_the_run(&self, time: DateTime<Utc>) -> bool {
        (time - self.now).abs() < TimeDelta::hours(3)
    }

    fn replace_versions(&self, text: &str) -> String {
        let mut out = String::new();
        let mut digits = String::new();
        for c in text.chars().chain(std::iter::once('\0')) {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            if !digits.is_empty() {
                let symbol = self.versions.get(&digits).map(String::as_str);
                // The script's own numbers consist of nines.
                let is_given = digits.starts_with("999");
                out.push_str(if is_given { &digits } else { symbol.unwrap_or("<rv>") });
                digits.clear();
            }
            if c != '\0' {
                out.push(c);
            }
        }
        out
    }
}

fn is_uid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    })
}

fn is_age(text: &str) -> bool {
    let ends_in_unit = text.ends_with(['s', 'm', 'h', 'd', 'y']);
    ends_in_unit
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c))
}

/// The token's text without its resource version.
fn continue_token(text: &str) -> Option<String> {
    let mut token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?).ok()?;
    token["rv"].is_number().then(|| token["rv"] = json!("<rv>"));
    Some(format!("<continue {token}>"))
}
