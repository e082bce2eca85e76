//! Compiles the `.proto` files with protox, so that no protoc has to be installed.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let files = [
        "nrt/trace/v1/trace.proto",
        "nrt/trace/v1/host.proto",
        "nrt/trace/v1/control.proto",
    ];
    for file in files {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    // For reflection: who asks gets the names of messages and fields, as a generated client has them.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    fs::write(out.join("nrt.trace.v1.bin"), descriptors.encode_to_vec())?;
    let grpc = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .bytes(".nrt.trace.v1.Records.packed")
        .compile_fds(descriptors)?;
    Ok(())
}
