//! TLS at both ends of a connection over the network: 1.3 alone, with certificates that are pinned or vouched for.

use coloc_api::fingerprint::Fingerprint;
use coloc_api::tls::{TlsError, certificates, provider, wrong};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of a certificate and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The chain, the daemon's own first, in PEM.
    pub certificate: PathBuf,
    /// The key, in PEM.
    pub key: PathBuf,
}

impl Identity {
    /// One that is made here, for this address, unless it is there already.
    pub fn own(directory: &Path, address: IpAddr) -> Result<Self, TlsError> {
        let identity =
            Identity { certificate: directory.join("cert.pem"), key: directory.join("key.pem") };
        let made = |file: &Path, text: &str| {
            let written = std::fs::create_dir_all(directory)
                .and_then(|()| crate::tokens::write_private(file, text.as_bytes()));
            written.map_err(|error| wrong(file)(&error))
        };
        if !(identity.certificate.exists() && identity.key.exists()) {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let names = [host, "localhost".to_owned(), "127.0.0.1".to_owned(), address.to_string()];
            let own = rcgen::generate_simple_self_signed(names.to_vec())
                .map_err(|error| TlsError::Make(error.to_string()))?;
            made(&identity.key, &own.signing_key.serialize_pem())?;
            made(&identity.certificate, &own.cert.pem())?;
        }
        Ok(identity)
    }

    /// How a daemon with it talks, and what its clients pin.
    pub fn server(&self) -> Result<(Arc<ServerConfig>, Fingerprint), TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| wrong(&self.key)(&e))?;
        let first = chain.first().ok_or_else(|| wrong(&self.certificate)(&"no certificate"))?;
        let fingerprint = Fingerprint::of(first);
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok((Arc::new(config), fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_certificate_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("tls");
        let address = IpAddr::from([10, 0, 0, 1]);
        let (_, first) = Identity::own(&directory, address).unwrap().server().unwrap();
        let identity = Identity::own(&directory, address).unwrap();
        assert_eq!(identity.server().unwrap().1, first);
        let mode = std::fs::metadata(&identity.key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn wrong_files_are_named() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        let address = IpAddr::from([127, 0, 0, 1]);
        let (one, two) = (Identity::own(&one, address), Identity::own(&two, address));
        let (one, two) = (one.unwrap(), two.unwrap());
        let mixed = Identity { certificate: one.certificate.clone(), key: two.key.clone() };
        assert!(matches!(mixed.server(), Err(TlsError::Setup(_))));
        for text in ["", "nonsense", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"]
        {
            std::fs::write(&two.certificate, text).unwrap();
            let said = two.server().unwrap_err().to_string();
            assert!(said.contains("cert.pem"), "{said}");
            assert!(
                coloc_api::tls::Trust::Authorities(two.certificate.clone()).client().is_err(),
                "{text:?}"
            );
        }
        std::fs::write(&one.key, "").unwrap();
        assert!(one.server().unwrap_err().to_string().contains("key.pem"));
    }
}
