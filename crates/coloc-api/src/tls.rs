//! TLS over the network: 1.3 alone, with certificates that are pinned or vouched for. Here is the client's end.

use crate::fingerprint::Fingerprint;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
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
    Make(String),
}

/// Names the file that is wrong.
pub fn wrong(file: &Path) -> impl Fn(&dyn std::fmt::Display) -> TlsError {
    let file = file.to_owned();
    move |problem| TlsError::File { file: file.clone(), problem: problem.to_string() }
}

/// The cryptography of both ends.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates in a file.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(file).map_err(|error| wrong(file)(&error))?;
    all.collect::<Result<_, _>>().map_err(|error| wrong(file)(&error))
}

/// Which daemon a client believes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// No daemon yet: the certificate that it shows is told, and refused.
    None,
    /// The daemon with this certificate.
    Pinned(Fingerprint),
    /// A daemon with a certificate for the name it is called by, from an authority in this file.
    Authorities(PathBuf),
}

impl Trust {
    /// How a client that trusts so talks.
    pub fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Trust::None => Arc::new(Pinned(None)),
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

/// What is wrong with the other end if TLS failed of it, and what to do; `None` if something else failed.
pub(crate) fn distrust(error: &std::io::Error) -> Option<String> {
    use rustls::CertificateError as Wrong;
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let pin = "or give its fingerprint with --fingerprint, as `coloc daemon` says it at its start";
    Some(match error {
        Error::InvalidCertificate(Wrong::UnknownIssuer) => format!(
            "no certificate in the file of --ca vouches for its certificate; give the one that does, {pin}"
        ),
        Error::InvalidCertificate(
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. },
        ) => format!("its certificate is for another name; use a name that is in it, {pin}"),
        Error::InvalidCertificate(Wrong::Expired | Wrong::ExpiredContext { .. }) => {
            "its certificate has expired; its administrator must renew it".to_owned()
        }
        Error::InvalidCertificate(wrong) => format!("its certificate is no good ({wrong}); {pin}"),
        Error::General(problem) => problem.clone(),
        Error::InvalidMessage(_) => {
            "what answers there does not speak TLS; is it the port of `coloc daemon --listen`?"
                .to_owned()
        }
        other => format!("{other}; are both of one version?"),
    })
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
                "the daemon shows certificate {shown}, not {pinned}: it has a new one, or it is another daemon. Ask \
                 those who run it, and give --fingerprint or COLOC_FINGERPRINT with the new one"
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
