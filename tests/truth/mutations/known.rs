//! The texts of refusals that the embedded server gives otherwise than the real one, on purpose. Both refuse such an object.

/// Whether the errors of the two servers are equal, but for what the embedded server leaves out:
///
/// - fields whose gate is off, in a second source of a volume. Upstream drops them from the first source only. The second is refused
///   in any case.
/// - empty lists in what has no such field at all: ephemeral containers, which a template may not have, and the metadata of a
///   claim's template. Upstream takes an empty list for one that is set.
pub fn are_alike(real: &[String], here: &[String]) -> bool {
    let is_known = |error: &String| {
        error.contains(".user|Invalid value: ")
            || error.ends_with("|Forbidden: cannot be set for an Ephemeral Container")
            || (error.contains(".volumeClaimTemplate.metadata.") && error.ends_with("|Forbidden: cannot be set"))
    };
    here.iter().all(|error| real.contains(error)) && real.iter().all(|error| here.contains(error) || is_known(error))
}
