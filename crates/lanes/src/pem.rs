//! Files that hold certificates or keys.

use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::error::{Error, Kind};

/// Reads the certificates of a PEM file; `what` says in errors what the file is.
///
/// # Errors
/// [`Kind::Invalid`], naming the file and the cause; also where it holds none.
pub(crate) fn certificates(file: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let pem = read(file, what)?;
    let name = file.display();
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let bad = |e| Error::because(Kind::Invalid, format!("{what} {name} is no PEM"), format!("{e:?}"));
    let found = found.map_err(bad)?;
    match found.is_empty() {
        true => Err(Error::new(Kind::Invalid, format!("{what} {name} holds no certificate"))),
        false => Ok(found),
    }
}

/// Reads a file whole.
///
/// # Errors
/// [`Kind::Invalid`], naming the file and the cause.
pub(crate) fn read(file: &Path, what: &str) -> Result<Vec<u8>, Error> {
    let name = file.display();
    std::fs::read(file).map_err(|e| Error::because(Kind::Invalid, format!("{what} {name} can't be read"), e))
}
