//! Runs the vectors that the real upstream code computed (k8s.io/kubernetes v1.37.2, robfig/cron v3.0.1).
//! `tests/vectors/generate` records them.
//!
//! Guarantees: every row of every file is checked and none is skipped. A second run for another kind reports the rows
//! that it leaves out. A missing or empty file, a row that does not parse and an unknown field are failures. The number
//! of rows of each file is printed. `CRONJOB_VECTORS_DIR` names another directory with the same files, for sets from
//! other seeds.

#![allow(clippy::unwrap_used)]

mod vectors_support;
