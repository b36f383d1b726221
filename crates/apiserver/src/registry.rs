//! The server's description of a kind of object.
//!
//! Guarantees: storage, verbs, watches and patches are the same for every kind. All that differs between kinds is in a
//! [`Strategy`]. Objects are JSON values here, since the server must keep what clients send.
//!
//! Matches the strategies of k8s.io/kubernetes `pkg/registry` and `rest.RESTCreateStrategy`/`RESTUpdateStrategy` of
//! k8s.io/apiserver.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use apimachinery::field::FieldError;
use apimachinery::status::Qualified;
use chrono::{DateTime, Utc};
use serde_json::Value;

/// One served kind.
#[derive(Clone)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind; the kind of the list has the suffix `List`.
    pub kind: String,
    /// The plural name, as in URLs.
    pub plural: String,
    /// The singular name, as kubectl prints it.
    pub singular: String,
    /// Short names that kubectl accepts.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// Whether `/status` is a subresource.
    pub has_status: bool,
    /// Everything that differs between kinds.
    #[doc(hidden)]
    pub strategy: Arc<dyn Strategy>,
}

impl Resource {
    /// `group/version`; the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The plural name with its group, as most error messages print it.
    #[doc(hidden)]
    pub fn qualified(&self) -> Qualified {
        Qualified::new(&self.group, &self.plural)
    }

    /// The kind with its group, as validation errors print it.
    #[doc(hidden)]
    pub fn qualified_kind(&self) -> Qualified {
        Qualified::new(&self.group, &self.kind)
    }

    /// `plural.group`, as messages name a resource.
    pub fn qualified_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({})", self.qualified_name())
    }
}

/// One column of a table answer. Matches metav1 `TableColumnDefinition`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: Cow<'static, str>,
    /// `string`, `integer`, `boolean`, `date`.
    pub type_: Cow<'static, str>,
    /// `name` for the name column, else empty.
    pub format: Cow<'static, str>,
    /// Columns with a priority above 0 are shown in wide output only.
    pub priority: i32,
    /// The description of the column.
    pub description: Cow<'static, str>,
}

/// The rule for names of the kind. Matches the `ValidateNameFunc` that the kind's validation passes to
/// `ValidateObjectMeta` (k8s.io/apimachinery `pkg/api/validation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// `NameIsDNSSubdomain`: most kinds.
    #[default]
    Subdomain,
    /// `NameIsDNSLabel`: namespaces.
    Label,
    /// `ValidatePathSegmentName` alone, without the other rules for `metadata`: core/v1 events.
    PathSegment,
}

/// A value that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// The path of the field, with the indices of lists and the keys of maps.
    pub field: String,
    /// Go's decoding error, as if it were the only one.
    pub message: String,
}

/// What differs between kinds. `now` is the server's clock.
pub trait Strategy: Send + Sync + 'static {
    /// Decodes and encodes an object as the real server's types do. Unknown fields are removed and returned as paths (for
    /// `fieldValidation`). A field of the wrong type is an error with the real server's message.
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String>;
    /// Every value that `normalize` cannot decode, where the kind can tell.
    fn wrong_types(&self, object: &Value) -> Vec<WrongType> {
        let _ = object;
        Vec::new()
    }
    /// Sets the defaults of the API version.
    fn set_defaults(&self, object: &mut Value) {
        let _ = object;
    }
    /// Changes an object before it is first stored (clears the status, generates selectors and labels). `metadata` already has
    /// name, namespace, uid and creationTimestamp.
    fn prepare_for_create(&self, object: &mut Value);
    /// Validates a new object. The server itself validates `metadata`.
    fn validate_create(&self, object: &Value) -> Vec<FieldError>;
    /// Changes an object before it replaces `old` (keeps the status, increments the generation if the spec changed).
    fn prepare_for_update(&self, object: &mut Value, old: &Value);
    /// Validates an update.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError>;
    /// Changes an object before its status replaces that of `old` (keeps everything else).
    fn prepare_for_status_update(&self, object: &mut Value, old: &Value);
    /// Validates a status update.
    fn validate_status_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let _ = (object, old);
        Vec::new()
    }
    /// Warnings for the client, sent as `Warning` headers; `old` is the object that is replaced.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }
    /// Whether the kind is one of k8s.io/kubernetes. These reject a finalizer without a domain, and report each error once.
    fn is_native(&self) -> bool {
        true
    }
    /// The columns of the table.
    fn columns(&self) -> Vec<Column>;
    /// The cells of one object, one per column.
    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value>;
    /// The conditions of an object's table row: a list, or null. Matches `TableRow.Conditions`.
    fn row_conditions(&self, object: &Value) -> Value {
        let _ = object;
        Value::Null
    }
    /// The fields that field selectors accept beside `metadata.name` and `metadata.namespace`, with the object's values. Absent
    /// fields are empty.
    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        let _ = object;
        Vec::new()
    }
    /// The merge key of the list at `path` (field names without indices) in a strategic merge patch; `None` replaces the list.
    fn patch_merge_key(&self, path: &[&str]) -> Option<&'static str> {
        let _ = path;
        None
    }
    /// Whether strategic merge patches are accepted. Custom resources reject them, since their lists have no merge keys.
    fn takes_strategic_patches(&self) -> bool {
        true
    }
    /// The rule for names; a limit below 253 characters is checked in `validate_create`.
    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }
    /// Whether objects of the kind are answered and never stored (reviews). Such a kind serves only create, and [`answer`]
    /// fills in the result.
    ///
    /// [`answer`]: Strategy::answer
    fn is_virtual(&self) -> bool {
        false
    }
    /// Completes a virtual object after validation; the result is the answer to the create.
    fn answer(&self, object: &mut Value) {
        let _ = object;
    }
    /// Whether an update without resourceVersion overwrites any version (leases: no). Matches
    /// `RESTUpdateStrategy.AllowUnconditionalUpdate`.
    fn allow_unconditional_update(&self) -> bool {
        true
    }
    /// Whether an update of a missing object creates it (leases and events: yes). Matches
    /// `RESTUpdateStrategy.AllowCreateOnUpdate`.
    fn allow_create_on_update(&self) -> bool {
        false
    }
    /// Whether a deletion answers with the object (pods) and not with a Status. Matches `Store.ReturnDeletedObject`.
    fn returns_deleted_object(&self) -> bool {
        false
    }
    /// Whether field managers own the list at `path` (field names without indices) as a whole although it has a merge key
    /// (conditions of Jobs). Lists without a merge key are always owned as a whole.
    fn is_atomic_list(&self, path: &[&str]) -> bool {
        let _ = path;
        false
    }
    /// The grace period of a deletion in seconds, given the client's `requested`; `None` if the kind has no graceful deletion.
    /// Matches `rest.RESTGracefulDeleteStrategy` (pods: `CheckGracefulDelete`).
    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        let _ = (object, requested);
        None
    }
    /// The propagation policy of a deletion that gives none: `Background`, `Orphan` or `Foreground`.
    fn default_propagation(&self) -> &'static str {
        "Background"
    }
    /// The OpenAPI v3 schema of the kind; `$ref`s point into `#/components/schemas/`.
    fn schema(&self) -> Value;
}
