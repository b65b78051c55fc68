//! TLS at both ends of a connection over the network: 1.3 alone, with certificates that are pinned or vouched for.

use crate::fingerprint::Fingerprint;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// TLS that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of certificates or keys.
    #[error("{}: {problem}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A certificate and a key that do not go together, and the like.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] Error),
    /// A certificate of our own cannot be made.
    #[error("no certificate can be made: {0}")]
    Make(#[from] rcgen::Error),
}

fn wrong(file: &Path) -> impl Fn(&dyn std::fmt::Display) -> TlsError {
    let file = file.to_owned();
    move |problem| TlsError::File { file: file.clone(), problem: problem.to_string() }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

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
            let own = rcgen::generate_simple_self_signed(names.to_vec())?;
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

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(file).map_err(|error| wrong(file)(&error))?;
    all.collect::<Result<_, _>>().map_err(|error| wrong(file)(&error))
}

/// Whom a client believes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Nobody yet: what the daemon shows is told, and refused.
    Nobody,
    /// The daemon with this certificate.
    Pinned(Fingerprint),
    /// Whoever has a certificate for the name it is called by, from one of those in this file.
    Authorities(PathBuf),
}

impl Trust {
    /// How a client that trusts so talks.
    pub fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Trust::Nobody => Arc::new(Pinned(None)),
            Trust::Pinned(fingerprint) => Arc::new(Pinned(Some(*fingerprint))),
            Trust::Authorities(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots.add(certificate)?;
                }
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(roots.into(), provider());
                verifier.build().map_err(|error| wrong(file)(&error))?
            }
        };
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// Believes one certificate, whatever it says of itself: its fingerprint came another way.
#[derive(Debug)]
struct Pinned(Option<Fingerprint>);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Fingerprint::of(certificate);
        match self.0 {
            Some(pinned) if pinned == shown => Ok(ServerCertVerified::assertion()),
            Some(pinned) => Err(Error::General(format!(
                "the daemon shows certificate {shown}, not {pinned}: it has a new one, or it is somebody else"
            ))),
            None => Err(Error::General(format!(
                "the daemon shows certificate {shown}; if that is what it says of itself at its start, \
                 --fingerprint or COLOC_FINGERPRINT with it makes this program believe it"
            ))),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
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
            assert!(Trust::Authorities(two.certificate.clone()).client().is_err(), "{text:?}");
        }
        std::fs::write(&one.key, "").unwrap();
        assert!(one.server().unwrap_err().to_string().contains("key.pem"));
    }
}
