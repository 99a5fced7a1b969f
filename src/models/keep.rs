//! The parameter `keep` of learners that keep rows.

use super::{Allowed, CheckedSpec, Parameter, Value};
use crate::error::{Error, Result};
use crate::stats::Keep;

/// Which rows are kept.
pub(super) const KEEP: Parameter = Parameter {
    name: "keep",
    default: "all",
    allowed: Allowed::Custom("all|sample(n)|last(n)", |v| from_value(v).is_some()),
    help: "which rows are kept: all, a sample of n distinct ones (merges), or the last n (in a \
           stream only)",
};

/// The value of `keep` in a spec that declares it.
pub(super) fn keep(spec: &CheckedSpec) -> Result<Keep> {
    let odd = || Error::internal("parameter `keep` passed its check");
    from_value(spec.value(KEEP.name)?).ok_or_else(odd)
}

fn from_value(value: &Value) -> Option<Keep> {
    match value {
        Value::Word(word) if word == "all" => Some(Keep::All),
        Value::Call(call) => match (call.name.as_str(), call.args.as_slice()) {
            ("sample", [(None, n)]) => whole(n).map(Keep::Sample),
            ("last", [(None, n)]) => whole(n).map(Keep::Last),
            _ => None,
        },
        _ => None,
    }
}

/// A number of rows: from 1 to what row numbers can count.
fn whole(value: &Value) -> Option<usize> {
    match value {
        Value::Int(n) if *n >= 1 && *n <= i64::from(u32::MAX / 4) => Some(*n as usize),
        _ => None,
    }
}
