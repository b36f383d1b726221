//! The query of a request.
//!
//! Guarantees: parameters are decoded once. An invalid number or boolean is rejected with the message of Go's `strconv`, as
//! k8s.io/apimachinery `runtime.ParameterCodec` passes it on.

use apimachinery::field::{FieldError, forbidden_field, unsupported_field};
use apimachinery::quoting::quote;
use apimachinery::status::{self, Qualified, Result};

use super::object::Entry;
use super::registry::Resource;
use super::selectors::{FieldSelector, LabelSelector};
use serde_json::json;

/// The decoded parameters, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// Decodes percent encoding; invalid sequences stay as they are.
pub fn percent_decode(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        match bytes[index] {
            b'%' => match (hex(index + 1), hex(index + 2)) {
                (Some(high), Some(low)) => {
                    out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                    index += 2;
                }
                _ => out.push(b'%'),
            },
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Query {
    /// Parses the text after the question mark.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key, true), percent_decode(value, true))
        });
        Self(pairs.collect())
    }

    /// The first value; `None` if absent or empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether the parameter is present.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    /// All values.
    pub fn all(&self, key: &str) -> Vec<String> {
        self.0.iter().filter(|(k, _)| k == key).map(|(_, value)| value.clone()).collect()
    }

    /// An integer.
    pub fn integer(&self, key: &str) -> Result<Option<i64>> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let parse = |_| status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text)));
        text.parse().map(Some).map_err(parse)
    }

    /// A boolean. Matches `Convert_Slice_string_To_bool`: present and neither "0" nor "false" is true.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        let text = self.get(key).unwrap_or_default();
        self.has(key).then(|| text != "0" && !text.eq_ignore_ascii_case("false"))
    }
}

/// metav1 `ListOptions`.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Whether this is a watch.
    pub watch: bool,
    /// The label selector.
    pub labels: LabelSelector,
    /// The field selector.
    pub fields: FieldSelector,
    /// The resourceVersion; empty for the newest.
    pub resource_version: String,
    /// `Exact`, `NotOlderThan` or empty.
    pub resource_version_match: String,
    /// The maximum number of objects; 0 for no limit.
    pub limit: usize,
    /// The continue token of the previous page.
    pub continue_token: String,
    /// Whether the client asks for bookmarks.
    pub bookmarks: bool,
    /// Whether a watch starts with the existing objects.
    pub send_initial_events: Option<bool>,
    /// How long a watch lasts.
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    /// Parses and validates the parameters of a list or a watch. Matches `listOpts` of
    /// k8s.io/apiserver `pkg/endpoints/handlers/get.go`.
    pub fn read(query: &Query, resource: &Resource, name: Option<&str>) -> Result<Self> {
        let labels =
            LabelSelector::parse(query.get("labelSelector").unwrap_or_default()).map_err(status::bad_request)?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default(), resource);
        let mut options = Self {
            watch: query.boolean("watch").unwrap_or_default(),
            labels,
            fields: fields.map_err(status::bad_request)?,
            resource_version: query.get("resourceVersion").unwrap_or_default().to_owned(),
            resource_version_match: query.get("resourceVersionMatch").unwrap_or_default().to_owned(),
            limit: query.integer("limit")?.and_then(|limit| usize::try_from(limit).ok()).unwrap_or_default(),
            continue_token: query.get("continue").unwrap_or_default().to_owned(),
            bookmarks: query.boolean("allowWatchBookmarks").unwrap_or_default(),
            send_initial_events: query.boolean("sendInitialEvents"),
            timeout_seconds: query.integer("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok()),
        };
        options.set_defaults();
        let errors = options.errors();
        if !errors.is_empty() {
            return Err(status::invalid(&Qualified::meta("ListOptions"), "", &errors));
        }
        if let Some(name) = name {
            options.select_name(name)?;
        }
        Ok(options)
    }

    /// A watch without a resourceVersion starts with the existing objects. Matches `SetListOptionsDefaults`.
    fn set_defaults(&mut self) {
        let legacy = self.resource_version.is_empty() || self.resource_version == "0";
        if self.watch && legacy && self.send_initial_events.is_none() && self.resource_version_match.is_empty() {
            self.send_initial_events = Some(true);
            "NotOlderThan".clone_into(&mut self.resource_version_match);
        }
    }

    fn select_name(&mut self, name: &str) -> Result<()> {
        if self.fields.is_empty() {
            self.fields.and_equals("metadata.name", name);
        } else if self.fields.exact("metadata.name") != Some(name) {
            return Err(status::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        Ok(())
    }

    /// Matches `ValidateListOptions`.
    fn errors(&self) -> Vec<FieldError> {
        const MATCH: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        let wanted = self.resource_version_match.as_str();
        let forbid = |errors: &mut Vec<FieldError>, field: &str, why: &str| errors.push(forbidden_field(field, why));
        if self.watch && self.send_initial_events.is_some() && wanted != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            forbid(&mut errors, MATCH, why);
        }
        if !wanted.is_empty() {
            if self.watch && self.send_initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                forbid(&mut errors, MATCH, why);
            }
            if self.watch && wanted != "NotOlderThan" {
                errors.push(unsupported_field(MATCH, &json!(wanted), &["NotOlderThan"]));
            }
            if !self.watch && self.resource_version.is_empty() {
                forbid(&mut errors, MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid(&mut errors, MATCH, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !self.watch && !["Exact", "NotOlderThan"].contains(&wanted) {
                errors.push(unsupported_field(MATCH, &json!(wanted), &["Exact", "NotOlderThan", ""]));
            }
            if !self.watch && wanted == "Exact" && self.resource_version == "0" {
                forbid(&mut errors, MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if !self.watch && self.send_initial_events.is_some() {
            forbid(&mut errors, "sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        errors
    }

    /// Whether both selectors match an object.
    pub fn selects(&self, entry: &Entry, resource: &Resource) -> bool {
        if self.labels.is_empty() && self.fields.is_empty() {
            return true;
        }
        let object = entry.object();
        self.labels.matches(&object) && self.fields.matches(&object, resource)
    }

    /// The resourceVersion as a number, 0 if empty; `Err` is the message of `ParseResourceVersion`.
    pub fn revision(&self) -> std::result::Result<u64, String> {
        parse_revision(&self.resource_version)
    }
}

/// Matches `storage.APIObjectVersioner.ParseResourceVersion`.
pub fn parse_revision(text: &str) -> std::result::Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let quoted = quote(text);
        format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax")
    })
}
