#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| labelflow_fuzz::escaping(labelflow_fuzz::model, data));
