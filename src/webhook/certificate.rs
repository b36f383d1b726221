//! A self-signed certificate for the webhooks, and its CA.
//!
//! Guarantees: the CA's key is discarded after it has signed one certificate, so it cannot leak. A renewed certificate comes
//! with its own CA and its predecessor's, so that clients trust both while replicas switch. A certificate is due for renewal
//! long before it expires. No I/O and no clock; the keys are the only randomness.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// The validity of a certificate, and the age at which it is replaced.
const VALIDITY: TimeDelta = TimeDelta::days(365);
const RENEW_AFTER: TimeDelta = TimeDelta::days(243);

/// How far the API server's clock may be behind.
const CLOCK_SKEW: TimeDelta = TimeDelta::days(1);

/// Annotations of the Secret: the renewal time, and the names of the certificate.
const RENEW_AT: &str = "cronjob-controller/renew-at";
const NAMES: &str = "cronjob-controller/names";

/// A certificate, its key, and the CAs that a client has to trust. All PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The CA of this certificate, then that of its predecessor.
    pub ca: String,
    /// The serving certificate.
    pub cert: String,
    /// Its key.
    pub key: String,
    renew_at: DateTime<Utc>,
    names: Vec<String>,
}

/// The names of a Service, and those of this machine for webhooks that are configured by URL.
pub fn names_of(service: &str, namespace: &str) -> Vec<String> {
    let inside = format!("{service}.{namespace}");
    [format!("{inside}.svc"), format!("{inside}.svc.cluster.local"), inside, "localhost".into(), "127.0.0.1".into()]
        .into()
}

impl Certificate {
    /// Generates a CA, a key and a certificate for these names.
    ///
    /// # Errors
    /// When a name is invalid.
    pub fn make(names: &[String], predecessor: Option<&Self>, now: DateTime<Utc>) -> Result<Self, rcgen::Error> {
        let mut ca = params(&[], "cronjob-controller webhook CA", now)?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let key = KeyPair::generate()?;
        let mut leaf = params(names, "cronjob-controller webhook", now)?;
        leaf.use_authority_key_identifier_extension = true;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let cert = leaf.signed_by(&key, &issuer)?.pem();
        let before = predecessor.map_or("", |predecessor| first_pem(&predecessor.ca));
        Ok(Self {
            ca: issuer.pem() + before,
            cert,
            key: key.serialize_pem(),
            renew_at: now + RENEW_AFTER,
            names: names.to_vec(),
        })
    }

    /// Whether the certificate is due for renewal or does not have these names.
    pub fn is_due(&self, names: &[String], now: DateTime<Utc>) -> bool {
        now >= self.renew_at || self.names != names
    }

    /// Reads the certificate from its Secret; `None` if a part is missing.
    pub fn from_secret(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        let annotations = secret.metadata.annotations.as_ref()?;
        Some(Self {
            ca: text("ca.crt")?,
            cert: text("tls.crt")?,
            key: text("tls.key")?,
            renew_at: annotations.get(RENEW_AT)?.parse().ok()?,
            names: annotations.get(NAMES)?.split(',').map(str::to_owned).collect(),
        })
    }

    /// Writes the certificate into a Secret; everything else in the Secret stays.
    pub fn put_into(&self, secret: &mut Secret) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        secret.data = Some(BTreeMap::from([
            ("ca.crt".to_owned(), bytes(&self.ca)),
            ("tls.crt".to_owned(), bytes(&self.cert)),
            ("tls.key".to_owned(), bytes(&self.key)),
        ]));
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.insert(RENEW_AT.to_owned(), self.renew_at.to_rfc3339());
        annotations.insert(NAMES.to_owned(), self.names.join(","));
    }
}

fn params(names: &[String], common_name: &str, now: DateTime<Utc>) -> Result<CertificateParams, rcgen::Error> {
    // Truncated to midnight: a day's precision is enough for a year.
    let small = |number: u32| u8::try_from(number).unwrap_or(1);
    let day = |time: DateTime<Utc>| date_time_ymd(time.year(), small(time.month()), small(time.day()));
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = day(now - CLOCK_SKEW);
    params.not_after = day(now + VALIDITY);
    Ok(params)
}

fn first_pem(bundle: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----\n";
    bundle.find(END).map_or("", |at| &bundle[..at + END.len()])
}
