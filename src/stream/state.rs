//! The state of a stage in a checkpoint, and the way back.

use super::answers::Fitted;
use super::checkpoint::Checkpoint;
use super::memory::{Block, Memory};
use super::online::Parameters;
use super::pending::Pending;
use super::stage::{Brain, Counts, Mode, Stage, StageOptions};
use super::{OnlineLearner, RunningReport};
use crate::error::{Error, Result};
use crate::models::{Learner, Registry, Trainer};
use crate::stats::State;
use crate::store::{from_bytes, snapshot_from_bytes, to_bytes};
use arrow::array::RecordBatch;
use serde_json::{Value, json};

impl Stage {
    /// Everything needed to go on from here, in a checkpoint to which the source and the sink add
    /// where they are.
    ///
    /// # Errors
    ///
    /// Only when Arrow cannot hold it.
    pub fn save(&self) -> Result<Checkpoint> {
        let mut out = Checkpoint::default();
        out.put_json("settings", &self.options.settings());
        let Counts { rows, refused_batches, refused_rows, unmatched } = self.counts;
        let given_up = self.waiting().1;
        out.put_json("counts", &json!([rows, refused_batches, refused_rows, unmatched, given_up]));
        if let Some(layout) = &self.layout {
            out.put_batch("schema", &RecordBatch::new_empty(layout.schema.clone()))?;
        }
        out.put_batch("report", &RecordBatch::from(self.report.encode().to_array()?))?;
        if let Some(batch) = self.pending.as_ref().map(Pending::encode).transpose()?.flatten() {
            out.put_batch("pending", &batch)?;
        }
        if let Brain::Learning(learner) = &self.brain {
            learner.save(&mut out)?;
        }
        out.put_json("model", &json!(self.model_digest));
        Ok(out)
    }

    /// Goes on from a checkpoint of a stage with the same options.
    ///
    /// # Errors
    ///
    /// `Incompatible` when the options differ, with the difference named; `Corrupt` for a
    /// checkpoint that does not fit together.
    pub fn restore(&mut self, checkpoint: &Checkpoint, registry: &Registry) -> Result<()> {
        check_settings(&checkpoint.json("settings")?, &self.options.settings())?;
        let counts = checkpoint.json("counts")?;
        let count = |i: usize| counts.get(i).and_then(Value::as_u64).ok_or_else(unfit);
        self.counts = Counts {
            rows: count(0)?,
            refused_batches: count(1)?,
            refused_rows: count(2)?,
            unmatched: count(3)?,
        };
        if let Some(batch) = checkpoint.batch("schema")? {
            self.layout = Some(self.options.layout(&batch.schema())?);
        }
        let report = checkpoint.batch("report")?.ok_or_else(unfit)?;
        let report = State::try_from_array(&report.into())?;
        self.report = RunningReport::decode(self.options.empty_report(), &report)?;
        if let Mode::Delayed { most, when_full, .. } = self.options.mode {
            let mut pending = match checkpoint.batch("pending")? {
                Some(batch) => Pending::decode(&batch, most, when_full)?,
                None => Pending::new(most, when_full),
            };
            pending.given_up = count(4)?;
            self.pending = Some(pending);
        }
        if let Brain::Learning(learner) = &mut self.brain {
            learner.restore(checkpoint, registry)?;
            // What it knows goes back to that model, not to the one it was made with.
            let digest = checkpoint.json("model")?;
            self.model_digest = digest.as_str().map(str::to_string);
        }
        Ok(())
    }
}

impl StageOptions {
    /// The options that results depend on, by name.
    fn settings(&self) -> Value {
        json!({
            "mode": format!("{:?}", self.mode),
            "labels": self.labels,
            "separator": self.separator,
            "features": self.features,
            "exclude": self.exclude,
            "time": self.time,
            "update-every": self.learning.update_every,
            "forgetting": format!("{:?}", self.learning.forgetting),
            "scores": self.learning.scores,
            "drop-after": self.learning.drop_after,
            "report-window": self.report_window,
        })
    }
}

/// # Errors
///
/// The first setting that was another one.
pub fn check_settings(before: &Value, now: &Value) -> Result<()> {
    let names = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
    let mut all: Vec<String> = names(before);
    all.extend(names(now));
    match all.into_iter().find(|name| before.get(name) != now.get(name)) {
        None => Ok(()),
        Some(name) => {
            let value = |v: &Value| v.get(&name).unwrap_or(&Value::Null).to_string();
            Err(Error::incompatible(format!(
                "the checkpoint was made with `{name}` {} and it is {} now: use the same options, \
                 or another checkpoint directory",
                value(before),
                value(now)
            )))
        }
    }
}

fn unfit() -> Error {
    Error::corrupt("the pieces of the checkpoint do not fit together")
}

impl OnlineLearner {
    fn save(&self, out: &mut Checkpoint) -> Result<()> {
        let mut put = |name: &str, learner: &dyn Learner, rows: u64| -> Result<()> {
            out.put(name, to_bytes(&self.trainer.snapshot(learner, rows))?);
            Ok(())
        };
        let mut state = json!({ "learned": self.learned, "last_seen": self.last_seen });
        if self.trainer.space().features.declared {
            put("learner", self.trainer.learner(), self.trainer.rows())?;
        }
        match &self.memory {
            Memory::Whole => {}
            Memory::Fading { landmark, .. } => state["landmark"] = json!(landmark),
            Memory::Sliding(window) => {
                let open: Vec<&Block> = window.open.iter().collect();
                let front: Vec<&Block> = window.front.iter().collect();
                let back: Vec<&Block> = window.back.iter().collect();
                for (name, blocks) in [("open", open), ("front", front), ("back", back)] {
                    let places: Vec<_> = blocks.iter().map(|b| json!([b.index, b.rows])).collect();
                    state[name] = Value::Array(places);
                    for (i, block) in blocks.iter().enumerate() {
                        put(&format!("{name}/{i}"), &*block.learner, block.rows)?;
                    }
                }
            }
        }
        if let Some(Fitted { every, model, version }) = &self.fitted {
            state["fitted"] = json!([every, version]);
            if let Some(model) = model {
                out.put("fitted", to_bytes(model)?);
            }
        }
        out.put_json("learning", &state);
        out.put_json("spec", &json!(self.trainer.spec().to_string()));
        Ok(())
    }

    fn restore(&mut self, from: &Checkpoint, registry: &Registry) -> Result<()> {
        let spec = json!(self.trainer.spec().to_string());
        check_settings(&json!({ "algorithm": from.json("spec")? }), &json!({ "algorithm": spec }))?;
        let state = from.json("learning")?;
        self.learned = state["learned"].as_u64().ok_or_else(unfit)?;
        let last_seen = state["last_seen"].as_array().ok_or_else(unfit)?;
        self.last_seen = last_seen.iter().filter_map(Value::as_u64).collect();
        if let Some(bytes) = from.get("learner") {
            self.trainer = Trainer::resume(&snapshot_from_bytes(bytes, registry)?)?;
        }
        let restored = |name: &str| -> Result<Vec<Block>> {
            let places = state[name].as_array().ok_or_else(unfit)?;
            let block = |(i, place): (usize, &Value)| -> Result<Block> {
                let bytes = from.get(&format!("{name}/{i}")).ok_or_else(unfit)?;
                let model = snapshot_from_bytes(bytes, registry)?;
                Ok(Block {
                    index: place[0].as_i64().ok_or_else(unfit)?,
                    rows: place[1].as_u64().ok_or_else(unfit)?,
                    learner: Trainer::resume(&model)?.into_learner(),
                })
            };
            places.iter().enumerate().map(block).collect()
        };
        match &mut self.memory {
            Memory::Whole => {}
            Memory::Fading { landmark, .. } => *landmark = state["landmark"].as_i64(),
            Memory::Sliding(window) => {
                window.open = restored("open")?.pop();
                window.front = restored("front")?;
                window.back = restored("back")?;
            }
        }
        self.parameters = Parameters::Unknown;
        self.fitted = match state.get("fitted") {
            None => None,
            Some(fitted) => Some(Fitted {
                every: fitted[0].as_u64().ok_or_else(unfit)?,
                version: fitted[1].as_u64().ok_or_else(unfit)?,
                model: match from.get("fitted") {
                    Some(bytes) => Some(Box::new(from_bytes(bytes, registry)?)),
                    None => None,
                },
            }),
        };
        Ok(())
    }
}
