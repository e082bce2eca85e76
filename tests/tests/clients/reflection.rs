//! Reflection in its version v1, step by step as grpcurl walks it: the services, then the file of one, then all that it
//! imports.

use std::collections::BTreeMap;

use hyper_util::rt::TokioIo;
use nrt_trace_tests::Host;
use prost::Message;
use prost_types::FileDescriptorProto;
use tokio::net::UnixStream;
use tonic::transport::Endpoint;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::SERVICES;

/// Asks questions, each in a stream of its own.
fn ask(host: &Host, questions: Vec<MessageRequest>) -> Vec<MessageResponse> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let path = host.control_socket();
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    runtime.block_on(async {
        // A name that is no host's must not matter either.
        let endpoint = Endpoint::from_static("http://nrt-trace");
        let channel = endpoint.connect_with_connector(connector).await.unwrap();
        let mut client = ServerReflectionClient::new(channel);
        let mut answers = Vec::new();
        for question in questions {
            let request = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(question),
            };
            let stream = client
                .server_reflection_info(tokio_stream::iter([request]))
                .await;
            let answer: ServerReflectionResponse = stream
                .unwrap()
                .into_inner()
                .message()
                .await
                .unwrap()
                .unwrap();
            answers.push(answer.message_response.unwrap());
        }
        answers
    })
}

fn files(answer: &MessageResponse) -> Vec<FileDescriptorProto> {
    let MessageResponse::FileDescriptorResponse(found) = answer else {
        panic!("{answer:?}");
    };
    let files = found.file_descriptor_proto.iter();
    files
        .map(|bytes| FileDescriptorProto::decode(&bytes[..]).unwrap())
        .collect()
}

#[test]
fn every_file_of_a_service_can_be_had_by_name_and_by_symbol() {
    let host = Host::with_daemon();
    let answers = ask(
        &host,
        vec![
            MessageRequest::ListServices(String::new()),
            MessageRequest::FileContainingSymbol("nrt.trace.v1.TraceControl".to_owned()),
            MessageRequest::FileContainingSymbol("nrt.trace.v1.TraceControl.Start".to_owned()),
        ],
    );
    let MessageResponse::ListServicesResponse(services) = &answers[0] else {
        panic!("{answers:?}");
    };
    let mut names: Vec<_> = services.service.iter().map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, SERVICES);
    let [control] = &files(&answers[1])[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(control.name(), "nrt/trace/v1/control.proto");
    assert_eq!(files(&answers[2])[0].name(), control.name());

    // Whatever a file imports can be had too, until every type that a method names is known.
    let mut known = BTreeMap::from([(control.name().to_owned(), control.clone())]);
    let mut wanted = control.dependency.clone();
    while let Some(name) = wanted.pop() {
        if known.contains_key(&name) {
            continue;
        }
        let answers = ask(&host, vec![MessageRequest::FileByFilename(name.clone())]);
        for file in files(&answers[0]) {
            wanted.extend(file.dependency.iter().cloned());
            known.insert(file.name().to_owned(), file);
        }
    }
    let messages: Vec<String> = known
        .values()
        .flat_map(|file| {
            let package = file.package().to_owned();
            let names = file.message_type.iter();
            names.map(move |message| format!(".{package}.{}", message.name()))
        })
        .collect();
    let methods = &control.service[0].method;
    assert!(methods.len() >= 12, "{methods:?}");
    for method in methods {
        for name in [method.input_type(), method.output_type()] {
            assert!(messages.iter().any(|message| message == name), "{name}");
        }
    }
}
