//! Tensor files of both formats.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for name in ["tensor.npy", "tensors.safetensors"] {
        let _ = pipeline::tensor::read_file(name, bytes);
    }
});
