//! Compiles the `.proto` files with protox, so that no protoc has to be installed.

use std::error::Error;

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
    let grpc = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .bytes(".nrt.trace.v1.Records.packed")
        .compile_fds(descriptors)?;
    Ok(())
}
