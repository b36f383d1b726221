//! Patches: JSON, merge, strategic merge, apply.
//!
//! Guarantees: pure. A patch that cannot be applied changes nothing and is rejected with the status that k8s.io/apiserver
//! `pkg/endpoints/handlers/patch.go` gives.

pub mod apply;
mod handler;
mod json;
mod merge;
mod strategic;
mod typed;

pub use self::handler::patch;
pub use self::json::apply as json_patch;
pub use self::merge::apply as merge_patch;
pub use self::strategic::{apply as strategic_patch, go_map};

/// The forms of a patch, by content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Lists are merged by key; `$patch` directives apply.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Parses the `Content-Type` header.
    pub fn from_content_type(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
