//! YAML as this program writes it.
//!
//! Guarantee: a string without line breaks stays on one line, as in the files of controller-gen.

use serde::Serialize;
use serde_saphyr::{SerializeError, ser_options, to_string_with_options};

/// Writes one document.
pub(crate) fn write(value: &impl Serialize) -> Result<String, SerializeError> {
    to_string_with_options(value, ser_options! { folded_wrap_chars: usize::MAX })
}
