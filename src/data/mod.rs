//! What the columns mean: labels, features, and rows in the numbering of a model.
//!
//! Arrow arrays come in; [`Rows`] go out. A [`Space`] numbers labels and features in the order in
//! which they were met, a [`Binding`] finds each feature of a space in an Arrow type, and reading a
//! batch through a binding gives rows whose entries are plain numbers.

mod binding;
mod discretise;
mod features;
pub mod generate;
mod ids;
mod label_columns;
mod label_sets;
mod labels;
mod pattern;
mod plain;
mod rows;
mod space;
mod translate;
mod vocabulary;

pub use binding::Binding;
pub use discretise::Discretiser;
pub use features::{Feature, FeatureKind, FeatureOptions, FeatureSpace};
pub use ids::{FeatureId, Id, LabelId, ValueId};
pub(crate) use label_columns::flag_lists;
pub use label_columns::split_labels;
pub use label_sets::LabelSets;
pub use labels::{LABELS_METADATA_KEY, LabelReader, declared_labels};
pub use pattern::Pattern;
pub(crate) use plain::{plain, plain_type};
pub use rows::{Csr, MISSING_CATEGORY, Rows};
pub use space::{Remap, Space, Used};
pub use translate::Translator;
pub use vocabulary::Vocabulary;
