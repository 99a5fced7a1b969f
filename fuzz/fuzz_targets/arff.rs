#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| labelflow_fuzz::arff(data));
