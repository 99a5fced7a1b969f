//! What the papers did to features, fitted on the training rows of each round.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, StringArray, UInt32Array,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use arrow::record_batch::RecordBatch;
use labelflow::Result;
use labelflow::data::{Discretiser, FeatureId, Id, LabelId, LabelReader, LabelSets, Vocabulary};
use labelflow::evaluate::Split;
use std::collections::HashSet;
use std::sync::Arc;

/// What is done to features.
#[derive(Clone, Copy)]
pub enum Features {
    /// Nothing.
    AsTheyAre,
    /// To the range from 0 to 1.
    UnitRange,
    /// Cut into quartiles, which are categories.
    Quartiles,
    /// Quartiles, of the columns that CFS selects for any label: at most as many as in the paper.
    /// Words that a row has or not are such columns too.
    Selected,
    /// The same, and at most half as many.
    HalfSelected,
}

impl Features {
    /// What a table says after the spec.
    pub fn name(&self) -> &'static str {
        match self {
            Features::AsTheyAre => "",
            Features::UnitRange => ", numbers from 0 to 1",
            Features::Quartiles => ", quartiles",
            Features::Selected => ", quartiles, selected",
            Features::HalfSelected => ", quartiles, half as many selected",
        }
    }
}

/// The rows that train and those that test; `None` when there is nothing to prepare. At most `most`
/// columns are selected.
pub fn prepared(
    batch: &RecordBatch,
    split: &Split,
    features: &Features,
    most: usize,
) -> Result<Option<(RecordBatch, RecordBatch)>> {
    let select = matches!(features, Features::Selected | Features::HalfSelected);
    let most = if matches!(features, Features::HalfSelected) { most / 2 } else { most };
    let batch = if select { &words_as_columns(batch)? } else { batch };
    let part = |rows: &[u32]| take_record_batch(batch, &UInt32Array::from(rows.to_vec()));
    let (train, test) = (part(&split.train)?, part(&split.test)?);
    if matches!(features, Features::AsTheyAre) {
        return Ok(Some((train, test)));
    }
    let schema = batch.schema();
    let wanted = |i: &usize| match schema.field(*i).data_type() {
        DataType::Float64 => true,
        DataType::Boolean => select,
        _ => false,
    };
    let columns: Vec<usize> = (0..schema.fields().len()).filter(wanted).collect();
    if columns.is_empty() {
        return Ok(None);
    }
    let mut kept: HashSet<usize> = columns.iter().copied().collect();
    if select {
        let bins = columns.iter().map(|&c| bins(&train, c)).collect::<Result<Vec<Vec<u32>>>>()?;
        kept = selection(&bins, &labels(&train)?, most).into_iter().map(|i| columns[i]).collect();
    }
    let both = [&train, &test].map(|batch| -> Result<RecordBatch> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (i, field) in schema.fields().iter().enumerate() {
            if !columns.contains(&i) {
                fields.push(Arc::clone(field));
                arrays.push(Arc::clone(batch.column(i)));
                continue;
            }
            if kept.contains(&i) {
                let array = column(&train, batch, i, features)?;
                fields.push(Arc::new(Field::new(field.name(), array.data_type().clone(), true)));
                arrays.push(array);
            }
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    });
    let [train, test] = both;
    Ok(Some((train?, test?)))
}

/// The same rows, with a column for every word that a row has or not.
fn words_as_columns(batch: &RecordBatch) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let Some(map) = column.as_map_opt() else {
            fields.push(Arc::clone(field));
            arrays.push(Arc::clone(column));
            continue;
        };
        let (mut names, keys) = (Vocabulary::<FeatureId>::default(), map.keys().as_string::<i32>());
        let mut words: Vec<Vec<bool>> = Vec::new();
        for (row, ends) in map.value_offsets().windows(2).enumerate() {
            for entry in ends[0] as usize..ends[1] as usize {
                let word = names.intern(keys.value(entry)).index();
                words.resize_with(names.len(), || vec![false; batch.num_rows()]);
                words[word][row] = true;
            }
        }
        for (name, word) in names.names().zip(words) {
            fields.push(Arc::new(Field::new(name, DataType::Boolean, true)));
            arrays.push(Arc::new(BooleanArray::from(word)));
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// The number of the quartile, or whether a flag is set; 4 for what is missing.
fn bins(batch: &RecordBatch, column: usize) -> Result<Vec<u32>> {
    if let Some(flags) = batch.column(column).as_boolean_opt() {
        return Ok(flags.iter().map(|flag| flag.map_or(4, u32::from)).collect());
    }
    let cuts = cuts(batch, column)?;
    Ok(values(batch, column).map(|x| x.and_then(|x| cuts.bin(x)).unwrap_or(4)).collect())
}

/// Column `i` of `batch`, by what `train` has there.
fn column(train: &RecordBatch, batch: &RecordBatch, i: usize, of: &Features) -> Result<ArrayRef> {
    if *batch.column(i).data_type() == DataType::Boolean {
        return Ok(Arc::clone(batch.column(i)));
    }
    if matches!(of, Features::UnitRange) {
        let low = values(train, i).flatten().fold(f64::INFINITY, f64::min);
        let high = values(train, i).flatten().fold(f64::NEG_INFINITY, f64::max);
        let range = if high > low { high - low } else { 1.0 };
        let scaled = values(batch, i).map(|x| x.map(|x| (x - low) / range));
        return Ok(Arc::new(scaled.collect::<Float64Array>()));
    }
    let cuts = cuts(train, i)?;
    let bin = |x: Option<f64>| x.and_then(|x| cuts.bin(x)).map(|b| b.to_string());
    Ok(Arc::new(values(batch, i).map(bin).collect::<StringArray>()))
}

fn values(batch: &RecordBatch, column: usize) -> impl Iterator<Item = Option<f64>> {
    batch.column(column).as_primitive::<Float64Type>().iter()
}

fn cuts(train: &RecordBatch, column: usize) -> Result<Discretiser> {
    let values: Vec<f64> = values(train, column).flatten().collect();
    Discretiser::try_quantiles(&values, 4)
}

/// For each label whether each row has it.
fn labels(batch: &RecordBatch) -> Result<Vec<Vec<u32>>> {
    let (mut names, mut sets) = (Vocabulary::default(), LabelSets::default());
    let column = batch.column(batch.schema().index_of("labels")?);
    LabelReader::read(column, &mut sets, |name| Ok(Some(names.intern(name))))?;
    let of = |y: LabelId| sets.iter().map(|set| u32::from(set.contains(&y))).collect();
    Ok(names.ids().map(of).collect())
}

/// At most `most` columns that CFS selects for any of `labels`, as many for each: a set has merit when
/// its columns tell about the label and not about each other, both as symmetric uncertainty.
fn selection(columns: &[Vec<u32>], labels: &[Vec<u32>], most: usize) -> Vec<usize> {
    let among: Vec<Vec<f64>> =
        columns.iter().map(|a| columns.iter().map(|b| uncertainty(a, b)).collect()).collect();
    let order = |label: &Vec<u32>| {
        let told: Vec<f64> = columns.iter().map(|c| uncertainty(c, label)).collect();
        forward(&told, &among, most)
    };
    let orders: Vec<Vec<usize>> = labels.iter().map(order).collect();
    let union = |each: usize| -> HashSet<usize> {
        orders.iter().flat_map(|o| o.iter().take(each).copied()).collect()
    };
    let each = (1..=columns.len()).take_while(|&each| union(each).len() <= most).last();
    union(each.unwrap_or(1)).into_iter().collect()
}

/// The first `most` columns in the order in which each adds the most merit to those before it.
fn forward(told: &[f64], among: &[Vec<f64>], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut taken = vec![false; told.len()];
    let (mut tells, mut pairs) = (0.0, 0.0);
    let mut with = vec![0.0; told.len()];
    while order.len() < told.len().min(most) {
        let n = (order.len() + 1) as f64;
        let merit = |c: usize| (tells + told[c]) / (n + 2.0 * (pairs + with[c])).sqrt();
        let left = (0..told.len()).filter(|&c| !taken[c]);
        let Some(best) = left.max_by(|&a, &b| merit(a).total_cmp(&merit(b)).then(b.cmp(&a))) else {
            break;
        };
        tells += told[best];
        pairs += with[best];
        with.iter_mut().zip(&among[best]).for_each(|(w, u)| *w += u);
        taken[best] = true;
        order.push(best);
    }
    order
}

/// `2 (H(a) + H(b) - H(a, b)) / (H(a) + H(b))`.
fn uncertainty(a: &[u32], b: &[u32]) -> f64 {
    let mut joint = [[0.0f64; 5]; 5];
    a.iter().zip(b).for_each(|(&a, &b)| joint[a as usize][b as usize] += 1.0);
    let n = a.len() as f64;
    let entropy = |counts: &mut dyn Iterator<Item = f64>| -> f64 {
        counts.filter(|c| *c > 0.0).map(|c| -c / n * (c / n).ln()).sum()
    };
    let of_a = entropy(&mut joint.iter().map(|row| row.iter().sum()));
    let of_b = entropy(&mut (0..5).map(|b| joint.iter().map(|row| row[b]).sum()));
    let both = entropy(&mut joint.iter().flatten().copied());
    if of_a + of_b > 0.0 { 2.0 * (of_a + of_b - both) / (of_a + of_b) } else { 0.0 }
}
