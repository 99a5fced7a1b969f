//! Pure functions on slices and small values; nothing here knows about Arrow or labels.

mod hash;
mod log_space;
mod random;
mod top_k;

pub use hash::{FixedState, content_hash, content_hash_of_parts};
pub use log_space::{log_add_exp, log_sum_exp, logit, sigmoid};
pub(crate) use random::{STEP, Sequence, mix};
pub use top_k::top_k;
