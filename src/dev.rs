//! dev
pub mod data_dir;
pub mod job_controller;
pub mod kubeconfig;
pub mod kubelet;
pub mod manifests;
pub mod objects;
pub mod options;
pub mod requests;
