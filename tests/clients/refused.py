"""A client that may not control the daemon, although it reaches the socket: what every service answers it.

Usage: refused.py SOCKET. Writes one JSON object.
"""
import json
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc


def code(call):
    """The status with which a call ends, and what Neuron's runtime would have said."""
    try:
        call()
        return ["OK", None]
    except grpc.RpcError as error:
        return [error.code().name, dict(error.trailing_metadata() or ()).get("nrt-status")]


channel = grpc.insecure_channel(f"unix:{sys.argv[1]}")
health = health_pb2_grpc.HealthStub(channel)
reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
ask = reflection_pb2.ServerReflectionRequest(list_services="")
status = channel.unary_unary("/nrt.trace.v1.TraceControl/GetStatus")
print(json.dumps({
    "health": code(lambda: health.Check(health_pb2.HealthCheckRequest())),
    "reflection": code(lambda: list(reflection.ServerReflectionInfo(iter([ask])))),
    "status": code(lambda: status(b"")),
}))
