"""Calls that never reach a method, and names for the server that no URI has: how each ends.

Usage: wrong.py SOCKET. Writes two JSON objects: codes with what Neuron's runtime would have said; codes by authority.
"""
import json
import sys

import grpc

target = f"unix:{sys.argv[1]}"
control = "/nrt.trace.v1.TraceControl/"


def end(channel, method, message=b"", **how):
    """The status of a call with a message of raw bytes, and the runtime's."""
    try:
        channel.unary_unary(method)(message, **how)
        return ["OK", None]
    except grpc.RpcError as error:
        return [error.code().name, dict(error.trailing_metadata() or ()).get("nrt-status")]


channel = grpc.insecure_channel(target)
print(json.dumps({
    "undecodable": end(channel, control + "Start", b"\xff\xff\xff"),
    "too_large": end(channel, control + "Start", b"\x0a" + bytes(5 << 20)),
    "no_method": end(channel, control + "Nothing"),
    "no_service": end(channel, "/nrt.trace.v1.Nothing/Start"),
    "compressed": end(channel, control + "GetStatus", b"\x08\x01" * 500, compression=grpc.Compression.Gzip),
    "no_health": end(channel, "/grpc.health.v1.Health/Check", b"\x0a\x01x"),
}), flush=True)

names = ["localhost", "localhost:50051", "/run/x.sock", "%2Frun%2Fx.sock", "unix:///run/x.sock", "[::1]:80", "a b", "x#y?z@",
         "t\u00fcr", "\u00fc\u4e2d", "z" * 300 + "#", ""]
ends = {}
for name in names:
    channel = grpc.insecure_channel(target, options=[("grpc.default_authority", name)])
    # Twice: the second call finds the name in the compression table.
    ends[name] = [end(channel, control + "GetStatus")[0] for _ in range(2)]
print(json.dumps(ends), flush=True)
