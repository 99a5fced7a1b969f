//! What holds for training and scoring whatever the algorithm.

mod encodings;
mod reading;
