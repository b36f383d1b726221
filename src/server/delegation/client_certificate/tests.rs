#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

/// From `openssl req -x509 -newkey ed25519 -nodes -days 36500
/// -subj "/C=DE+O=a+O=b/O=c/CN=first/CN=jane/1.3.6.1.4.1.57683.2=u-1"`, with that OID in a configuration's `oid_section`.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfTCCAS8CFFCtWQTqwK8JRwEwEq46bD5AtrQXMAUGAytlcDBgMR8wCAYDVQQK
DAFhMAgGA1UECgwBYjAJBgNVBAYTAkRFMQowCAYDVQQKDAFjMQ4wDAYDVQQDDAVm
aXJzdDENMAsGA1UEAwwEamFuZTESMBAGCSsGAQQBg8JTAgwDdS0xMCAXDTI2MTEy
MzA4NDIyMFoYDzIxMjYxMDMwMDg0MjIwWjBgMR8wCAYDVQQKDAFhMAgGA1UECgwB
YjAJBgNVBAYTAkRFMQowCAYDVQQKDAFjMQ4wDAYDVQQDDAVmaXJzdDENMAsGA1UE
AwwEamFuZTESMBAGCSsGAQQBg8JTAgwDdS0xMCowBQYDK2VwAyEAYcID7NSdb4nk
6afn3XKWUcTDG1D62EclpeLC1B8VRDowBQYDK2VwA0EA5ShMq4STNnr3Ga42A24X
A4/Vp1LPBxlQSM8tzJ4oIowo+QBMboIlqDxGhS27OcBOO65e6rSW1/7UvLzMJHoh
DA==
-----END CERTIFICATE-----";

fn certificate() -> Vec<u8> {
    CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap().to_vec()
}

#[test]
fn subject_has_the_last_common_name_all_organizations_and_the_uid() {
    let want = Subject {
        common_name: "jane".to_owned(),
        organizations: ["a", "b", "c"].map(str::to_owned).to_vec(),
        uid: "u-1".to_owned(),
    };
    assert_eq!(subject(&certificate()).unwrap(), want);
}

proptest! {
    #[test]
    fn bytes_that_are_no_certificate_have_no_subject_and_cause_no_panic(
        cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut changed = certificate();
        prop_assert!(subject(&changed[..cut.index(changed.len())]).is_err());
        let at = at.index(changed.len());
        changed[at] = byte;
        let _ = subject(&changed);
    }
}
