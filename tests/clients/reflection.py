"""A client that has no .proto file: it learns everything from the server's reflection, as grpcurl does.

Usage: reflection.py SOCKET. Writes one JSON object a line.
"""
import json
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def say(**what):
    print(json.dumps(what), flush=True)


channel = grpc.insecure_channel(f"unix:{sys.argv[1]}")
database = ProtoReflectionDescriptorDatabase(channel)
services = sorted(database.get_services())
say(services=services)
pool = descriptor_pool.DescriptorPool(database)


def call(service, method, request):
    """Calls a method by its name with a request as JSON; an answer, or a list of them where the server streams."""
    method = pool.FindServiceByName(service).methods_by_name[method]
    message = message_factory.GetMessageClass(method.input_type)
    answer = message_factory.GetMessageClass(method.output_type)
    kind = channel.unary_stream if method.server_streaming else channel.unary_unary
    stub = kind(
        f"/{service}/{method.name}",
        request_serializer=message.SerializeToString,
        response_deserializer=answer.FromString,
    )
    result = stub(json_format.ParseDict(request, message()))
    turn = lambda one: json_format.MessageToDict(one, preserving_proto_field_name=True)  # noqa: E731
    return [turn(one) for one in result] if method.server_streaming else turn(result)


control = "nrt.trace.v1.TraceControl"
say(methods=[method.name for method in pool.FindServiceByName(control).methods])
say(types=len(call(control, "ListEventTypes", {})["types"]))
say(status=call(control, "GetStatus", {})["pid"])
call(control, "Start", {"nc": [0], "events": ["nrt_execute"], "max_events_per_nc": 2048})
parts = call(control, "Fetch", {"auto_commit": True})
say(parts=sorted({key for part in parts for key in part}))
call(control, "Stop", {"discard": True})
say(health=call("grpc.health.v1.Health", "Check", {"service": control})["status"])
