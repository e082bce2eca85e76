"""A fetch with default limits, counted and not consumed.

Usage: large.py SOCKET FOLDER-OF-PROTO FOLDER-FOR-STUBS. Writes one JSON object.
"""
import json
import sys

import grpc
from grpc_tools import protoc

socket, proto, stubs = sys.argv[1:]
files = [f"nrt/trace/v1/{name}.proto" for name in ("trace", "host", "control")]
assert protoc.main(["", f"-I{proto}", f"--python_out={stubs}", f"--grpc_python_out={stubs}", *files]) == 0
sys.path.insert(0, stubs)
from nrt.trace.v1 import control_pb2 as pb, control_pb2_grpc as rpc  # noqa: E402

stub = rpc.TraceControlStub(grpc.insecure_channel(f"unix:{socket}"))
size, names, largest = 0, set(), 0
for part in stub.Fetch(pb.FetchRequest()):
    size += len(part.records.packed)
    names.update(entry.text for entry in part.strings.entries if len(entry.text) == 64)
    largest = max(largest, part.ByteSize())
print(json.dumps({"records": size // 112, "names": len(names), "bytes": size, "largest": largest}), flush=True)
