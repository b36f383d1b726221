use std::path::Path;

use super::*;

#[test]
fn manifests_give_the_pod_its_grace_period() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    for file in ["install.yaml", "manager/deployment.yaml"] {
        let text = std::fs::read_to_string(manifests.join(file)).expect(file);
        let seconds = text.lines().filter_map(|line| line.trim().strip_prefix("terminationGracePeriodSeconds: "));
        assert_eq!(seconds.collect::<Vec<_>>(), [POD_GRACE.as_secs().to_string()], "{file}");
    }
}
