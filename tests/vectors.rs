//! Runs the vectors that the real upstream code computed (k8s.io/kubernetes v1.36.3, robfig/cron v3.0.1).
//!
//! Guarantees: every row of every file is judged and none is skipped (a second run for another kind says what it leaves
//! out); a missing or empty file, a row that does not parse
//! and a field that is not known are failures. Each file's count is printed. `CRONJOB_VECTORS_DIR` names another directory
//! with the same files, for sets computed from other seeds.

#![allow(clippy::unwrap_used)]

mod vectors_support;
