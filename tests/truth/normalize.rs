//! Makes answers of two servers comparable: uids, resource versions, times of the run and generated suffixes become
//! names that say where they were first seen, so that equal values stay equal and different ones different.
//!
//! Values that the script itself gives (a uid of zeros, a time years ago) stay as they are. A list's resource version
//! and that of a bookmark is the store's and moves with everybody's writes: it becomes `<rv>`. Ages in table cells are
//! times, too.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::base64;

/// What was seen so far in one scenario.
pub struct Normalizer {
    /// Around which times are the run's.
    now: DateTime<Utc>,
    step: usize,
    new_in_step: usize,
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
}

impl Normalizer {
    pub fn new(now: DateTime<Utc>) -> Self {
        Self {
            now,
            step: 0,
            new_in_step: 0,
            uids: BTreeMap::new(),
            versions: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// One answer's body.
    pub fn answer(&mut self, step: usize, body: Value) -> Value {
        self.step = step;
        self.new_in_step = 0;
        self.learn_names(&body);
        self.walk("", body, false)
    }

    fn mark(&mut self) -> String {
        self.new_in_step += 1;
        format!("{}.{}", self.step, self.new_in_step)
    }

    fn learn_names(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_names(item)),
            Value::Object(map) => {
                if let (Some(Value::String(prefix)), Some(Value::String(name))) =
                    (map.get("generateName"), map.get("name"))
                    && let Some(suffix) = name.strip_prefix(prefix.as_str())
                    && suffix.len() == 5
                    && suffix.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b))
                    && !self.names.contains_key(name)
                {
                    let mark = self.mark();
                    self.names.insert(name.clone(), format!("{prefix}<suffix {mark}>"));
                }
                map.values().for_each(|item| self.learn_names(item));
            }
            _ => {}
        }
    }

    fn walk(&mut self, key: &str, value: Value, is_stored: bool) -> Value {
        match value {
            Value::Array(items) => {
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
                            (key, value)
                        })
                        .collect(),
                )
            }
            Value::String(text) => Value::String(self.text(key, text, is_stored)),
            other => other,
        }
    }

    fn text(&mut self, key: &str, text: String, is_stored: bool) -> String {
        if key == "resourceVersion" && !text.is_empty() {
            return if is_stored { self.version(&text) } else { "<rv>".to_owned() };
        }
        if key == "continue"
            && let Some(token) = continue_token(&text)
        {
            return token;
        }
        if let Ok(time) = DateTime::parse_from_rfc3339(&text)
            && (time.to_utc() - self.now).abs() < TimeDelta::hours(3)
        {
            return if text.contains('.') { "<time with fraction>" } else { "<time>" }.to_owned();
        }
        let mut text = self.replace_uids(&text);
        for (name, normal) in &self.names {
            if text.contains(name.as_str()) {
                text = text.replace(name.as_str(), normal);
            }
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
        while let Some(at) = rest.find('-').filter(|at| *at >= 8) {
            let start = at - 8;
            let candidate = rest.get(start..start + 36);
            match candidate {
                Some(uid) if is_uid(uid) && !uid.starts_with("00000000-") => {
                    let symbol = if let Some(known) = self.uids.get(uid) {
                        known.clone()
                    } else {
                        let symbol = format!("<uid {}>", self.mark());
                        self.uids.insert(uid.to_owned(), symbol.clone());
                        symbol
                    };
                    out.push_str(&rest[..start]);
                    out.push_str(&symbol);
                    rest = &rest[start + 36..];
                }
                _ => {
                    out.push_str(&rest[..=at]);
                    rest = &rest[at + 1..];
                }
            }
        }
        out + rest
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
                // The script's own numbers are of nines.
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

/// The token's text with its resource version taken out.
fn continue_token(text: &str) -> Option<String> {
    let mut token: Value = serde_json::from_slice(&base64::decode_url(text)?).ok()?;
    token["rv"].is_number().then(|| token["rv"] = json!("<rv>"));
    Some(format!("<continue {token}>"))
}
