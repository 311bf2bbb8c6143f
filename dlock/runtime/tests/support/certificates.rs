//! Certificates that a test makes.
#![allow(dead_code, reason = "each test uses some of it")]

use std::ops::Range;

use dlock_runtime::tls::Identity;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

/// An issuer of certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, as PEM: the root to trust.
    pub(crate) root: String,
}

impl Authority {
    /// Makes an issuer.
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(&[], name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let root = params.self_signed(&key).expect("a root").pem();
        Self { issuer: Issuer::new(params, key), root }
    }

    /// Issues a certificate for these names.
    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.sign(&named(names, "a program"))
    }

    /// Issues one that is valid from the begin of the first year to that of the last.
    pub(crate) fn issue_for(&self, names: &[&str], years: Range<i32>) -> Identity {
        let mut params = named(names, "a program of its time");
        params.not_before = date_time_ymd(years.start, 1, 1);
        params.not_after = date_time_ymd(years.end, 1, 1);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { certificates: certificate.pem(), key: key.serialize_pem() }
    }
}

fn named(names: &[&str], common: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names of a certificate");
    params.distinguished_name.push(DnType::CommonName, common);
    params
}
