//! What the embedded API server knows of a kind of object.
//!
//! Guarantees: the server's storage, verbs, watches and patches know no kind; everything that differs between kinds is
//! asked of a [`Strategy`]. Objects are JSON values here, since the server must keep what clients send.
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

/// One kind of object that is served.
#[derive(Clone)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind; the list's kind is this with `List` behind it.
    pub kind: String,
    /// Plural name, as in URLs.
    pub plural: String,
    /// Singular name, as kubectl prints it.
    pub singular: String,
    /// Names that kubectl accepts instead.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` is a subresource of its own.
    pub has_status: bool,
    /// Everything that differs between kinds.
    pub strategy: Arc<dyn Strategy>,
}

impl Resource {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The plural name with its group, as most refusals name what they are about.
    pub fn qualified(&self) -> Qualified {
        Qualified::new(&self.group, &self.plural)
    }

    /// The kind with its group, as refusals of an object's content name it.
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
    /// Shown in wide output only where above 0.
    pub priority: i32,
    /// For people.
    pub description: Cow<'static, str>,
}

/// What a name of the kind must be. Matches the `ValidateNameFunc` that the kind's validation passes to
/// `ValidateObjectMeta` (k8s.io/apimachinery `pkg/api/validation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// `NameIsDNSSubdomain`: most kinds.
    #[default]
    Subdomain,
    /// `NameIsDNSLabel`: namespaces.
    Label,
    /// `ValidatePathSegmentName` alone, and nothing else of `metadata` is judged beforehand: core/v1 events.
    PathSegment,
}

/// What differs between kinds. `now` is the server's clock.
pub trait Strategy: Send + Sync + 'static {
    /// Decodes and encodes as the real server's types do: unknown fields go, and are returned as paths (for
    /// `fieldValidation`); a field of the wrong type is an error, in the real server's words.
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String>;
    /// Sets the defaults of the API version.
    fn set_defaults(&self, object: &mut Value);
    /// Changes an object before it is first stored (status wiped, selectors and labels generated). `metadata` with name,
    /// namespace, uid and creationTimestamp is in place.
    fn prepare_for_create(&self, object: &mut Value);
    /// Judges a new object. `metadata` itself is judged by the server.
    fn validate_create(&self, object: &Value) -> Vec<FieldError>;
    /// Changes an object before it replaces `old` (status kept, generation raised when the spec changed).
    fn prepare_for_update(&self, object: &mut Value, old: &Value);
    /// Judges a change.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError>;
    /// Changes an object before its status replaces that of `old` (everything else kept).
    fn prepare_for_status_update(&self, object: &mut Value, old: &Value);
    /// Judges a change of status.
    fn validate_status_update(&self, object: &Value, old: &Value) -> Vec<FieldError>;
    /// Warnings for the client, sent as `Warning` headers; `old` is what the object replaces.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }
    /// Whether a finalizer without a domain is refused. Custom resources may have any.
    fn wants_qualified_finalizers(&self) -> bool {
        true
    }
    /// The columns of the table form.
    fn columns(&self) -> Vec<Column>;
    /// The cells of one object, as many as there are columns.
    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value>;
    /// What is said of an object's row in tables: a list of conditions, or null. Matches `TableRow.Conditions`.
    fn row_conditions(&self, object: &Value) -> Value {
        let _ = object;
        Value::Null
    }
    /// The fields beside `metadata.name` and `metadata.namespace` that field selectors may name, with the object's
    /// values; absent fields are empty text.
    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)>;
    /// The merge key of the list at `path` (field names without indices) in a strategic merge patch; `None` replaces the list.
    fn patch_merge_key(&self, path: &[&str]) -> Option<&'static str>;
    /// Whether strategic merge patches are taken (custom resources: no, since nothing says how their lists are merged).
    fn takes_strategic_patches(&self) -> bool {
        true
    }
    /// What names must be; a longest name below 253 is judged in `validate_create`.
    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }
    /// Whether objects of the kind are answered and never stored (reviews): only create is served, and [`answer`] fills
    /// in what the client wants to know.
    ///
    /// [`answer`]: Strategy::answer
    fn is_virtual(&self) -> bool {
        false
    }
    /// Completes a virtual object after it was judged; the result is the answer to the create.
    fn answer(&self, object: &mut Value) {
        let _ = object;
    }
    /// Whether an update without resourceVersion replaces whatever is there (leases: no). Matches
    /// `RESTUpdateStrategy.AllowUnconditionalUpdate`.
    fn allow_unconditional_update(&self) -> bool {
        true
    }
    /// Whether an update of what does not exist creates it (leases and events: yes). Matches
    /// `RESTUpdateStrategy.AllowCreateOnUpdate`.
    fn allow_create_on_update(&self) -> bool {
        false
    }
    /// Whether a deletion answers with the object (pods) and not with a Status. Matches `Store.ReturnDeletedObject`.
    fn returns_deleted_object(&self) -> bool {
        false
    }
    /// Whether the list at `path` (field names without indices) belongs to field managers as a whole although it has a
    /// merge key (conditions of Jobs). Lists without a merge key always do.
    fn is_atomic_list(&self, path: &[&str]) -> bool {
        let _ = path;
        false
    }
    /// The seconds a deletion waits before the object goes, `requested` being the client's wish; `None` where the kind
    /// is not deleted gracefully. Matches `rest.RESTGracefulDeleteStrategy` (pods: `CheckGracefulDelete`).
    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        let _ = (object, requested);
        None
    }
    /// What deletion does with dependents when no propagation policy is given: `Background`, `Orphan` or `Foreground`.
    fn default_propagation(&self) -> &'static str {
        "Background"
    }
    /// The OpenAPI v3 schema of the kind, `$ref`s into `#/components/schemas/`.
    fn schema(&self) -> Value;
}
