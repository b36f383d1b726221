//! The texts of refusals that the embedded server gives otherwise than the real one, on purpose. Both refuse such an object.

const CLAIMS: &str = "|Forbidden: claims may not be set for Resources at pod-level";

/// Whether all that the real server refuses is not judged here: an empty list of claims in the resources of a Pod, which is the same as
/// none for the embedded server.
pub fn is_not_judged(real: &[String]) -> bool {
    !real.is_empty() && real.iter().all(|error| error.ends_with(CLAIMS))
}

/// Whether the errors of the two servers are equal, but for what the embedded server leaves out:
///
/// - fields whose gate is off, in a second source of a volume. Upstream drops them from the first source only. The second is refused
///   in any case.
/// - empty lists in what has no such field at all: ephemeral containers, which a template may not have, and the metadata of a
///   claim's template. Upstream takes an empty list for one that is set.
/// - an empty list of claims in the resources of a Pod, for the same reason.
pub fn are_alike(real: &[String], here: &[String]) -> bool {
    let is_known = |error: &String| {
        error.contains(".user|Invalid value: ")
            || error.contains(".defaultUser|Invalid value: ")
            || error.ends_with(CLAIMS)
            || error.ends_with("|Forbidden: cannot be set for an Ephemeral Container")
            || (error.contains(".volumeClaimTemplate.metadata.") && error.ends_with("|Forbidden: cannot be set"))
    };
    here.iter().all(|error| real.contains(error)) && real.iter().all(|error| here.contains(error) || is_known(error))
}
