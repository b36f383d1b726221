//! The owner that controls an object.

use std::sync::Arc;

use super::Uid;

/// The owner reference that has `controller: true`. Matches apimachinery `metav1.GetControllerOf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRef {
    /// API group of the controller, without the version.
    pub group: Arc<str>,
    /// Kind of the controller.
    pub kind: Arc<str>,
    /// Name of the controller, in the object's own namespace.
    pub name: Arc<str>,
    /// UID of the controller.
    pub uid: Uid,
}
