//! One error type for the whole crate.
//!
//! An [`Error`] is opaque: a [`ErrorKind`] for programs, one sentence for people, and the error
//! underneath where there is one. Messages are lower case, name the column, parameter, label, row
//! or file, and say what to do.

use std::borrow::Cow;
use std::fmt;

/// The result type of every fallible function in labelflow.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, coarse enough to match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, parameter or argument the caller chose is not valid.
    Usage,
    /// The input data break the data contract.
    Data,
    /// A file, column, model or algorithm does not exist.
    NotFound,
    /// Bytes that should be a model or a data file are damaged.
    Corrupt,
    /// Two things that do not fit together, such as models of different specs.
    Incompatible,
    /// The algorithm cannot do this by definition.
    Unsupported,
    /// A bound on labels, features or memory was reached.
    Limit,
    /// Reading or writing failed.
    Io,
    /// A promise inside labelflow was broken; please report it.
    Internal,
}

impl ErrorKind {
    /// Whether the caller can mend it by changing the call or the input.
    pub fn is_user_error(self) -> bool {
        !matches!(self, ErrorKind::Io | ErrorKind::Internal)
    }
}

/// An error with its kind, its sentence and its cause.
///
/// # Examples
///
/// ```
/// use labelflow::{Error, ErrorKind};
///
/// let error = Error::data("column `f0` holds an infinite value").context("file `a.parquet`");
/// assert_eq!(error.kind(), ErrorKind::Data);
/// assert_eq!(error.to_string(), "file `a.parquet`: column `f0` holds an infinite value");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync + 'static>>,
}

impl Error {
    /// An error of `kind` with its sentence.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), source: None }))
    }

    /// A choice of the caller that is not valid.
    pub fn usage(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Input data that break the data contract.
    pub fn data(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// Something named that does not exist.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Damaged bytes.
    pub fn corrupt(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Two things that do not fit together.
    pub fn incompatible(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Incompatible, message)
    }

    /// Something an algorithm cannot do.
    pub fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A bound that was reached.
    pub fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// A broken promise inside labelflow.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// A failed read or write of `what`.
    pub fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        let (kind, message) = match source.kind() {
            std::io::ErrorKind::NotFound => {
                (ErrorKind::NotFound, format!("{what} does not exist: check the path"))
            }
            _ => (ErrorKind::Io, format!("{what}: {source}")),
        };
        Self::new(kind, message).with_source(source)
    }

    /// Puts `context` before the sentence: `context: sentence`.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message).into();
        self
    }

    /// Keeps the error underneath.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// The kind, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(source: arrow::error::ArrowError) -> Self {
        Error::new(ErrorKind::Internal, format!("arrow: {source}")).with_source(source)
    }
}
