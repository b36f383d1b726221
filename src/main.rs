//! The command line of the controller.
fn main() {}
