"""A client as most people write one: stubs that grpcio-tools made of the .proto files, over the unix socket.

Usage: plain.py SOCKET FOLDER-OF-PROTO FOLDER-FOR-STUBS. Writes one JSON object a line; waits for a line where it wants
events.
"""
import json
import sys
import threading

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_tools import protoc

socket, proto, stubs = sys.argv[1:]
files = [f"nrt/trace/v1/{name}.proto" for name in ("trace", "host", "control")]
assert protoc.main(["", f"-I{proto}", f"--python_out={stubs}", f"--grpc_python_out={stubs}", *files]) == 0
sys.path.insert(0, stubs)
from nrt.trace.v1 import control_pb2 as pb, control_pb2_grpc as rpc, host_pb2  # noqa: E402


def say(**what):
    print(json.dumps(what), flush=True)


def refused(call):
    """The status of a call that must fail, and what Neuron's runtime would have said."""
    try:
        call()
    except grpc.RpcError as error:
        metadata = dict(error.trailing_metadata() or ())
        return [error.code().name, metadata.get("nrt-status")]
    return ["OK", None]


channel = grpc.insecure_channel(f"unix:{socket}")
stub = rpc.TraceControlStub(channel)
service = pb.DESCRIPTOR.services_by_name["TraceControl"].full_name
health = health_pb2_grpc.HealthStub(channel)
say(health=[health.Check(health_pb2.HealthCheckRequest(service=name)).status for name in (service, "")])

say(stop_of_nothing=refused(lambda: stub.Stop(pb.StopRequest())))
say(bad_filter=refused(lambda: stub.Start(pb.StartRequest(events=["nrt_exceute"]))))
run = stub.Start(pb.StartRequest(max_events_per_nc=200000)).run
say(run=run.max_events_per_nc)
sys.stdin.readline()

records, claimed, end = 0, 0, None
for part in stub.Fetch(pb.FetchRequest()):
    records += len(part.records.packed) // 112
    claimed += part.account.claimed
    if part.HasField("end"):
        end = part.end
say(records=records, claimed=claimed, events=end.events)

# All the rest of the API, once.
stub.GetStrings(pb.GetStringsRequest())
types = len(stub.ListEventTypes(pb.ListEventTypesRequest()).types)
processes = [producer.name for producer in stub.ListProducers(pb.ListProducersRequest()).producers]
snapshot = sum(len(part.records.packed) // 112 for part in stub.Snapshot(pb.SnapshotRequest()))
text = "".join(piece.text for piece in stub.GetMetrics(pb.GetMetricsRequest()))
filters = stub.SetFilter(pb.SetFilterRequest(events=pb.TypeFilter())).run.filter_changes
host = stub.GetHostStats(host_pb2.GetHostStatsRequest()).state.running
say(types=types, processes=processes, snapshot=snapshot, metrics=text.endswith("# EOF\n"), filters=filters, host=host)

# A subscription: from the oldest on, until it is cancelled; then one whose deadline passes while nothing comes.
oldest = pb.SubscribeRequest(**{"from": pb.SUBSCRIBE_FROM_OLDEST})
stream = stub.Subscribe(oldest)
followed = 0
for part in stream:
    followed += len(part.records.packed) // 112
    if followed == records:
        break
stream.cancel()
say(followed=followed, cancelled=refused(lambda: list(stream)))
say(late=refused(lambda: list(stub.Subscribe(pb.SubscribeRequest(), timeout=0.2))))

# Cancelled half-way: nothing is consumed, and the next fetch has all of it.
stream = stub.Fetch(pb.FetchRequest())
next(stream)
stream.cancel()
say(cancelled=refused(lambda: list(stream)))
# A deadline that is over before anything can come.
say(monitor_off=refused(lambda: list(stub.WatchHostStats(host_pb2.WatchHostStatsRequest()))))
watch = host_pb2.WatchHostStatsRequest(start=True)
say(late=refused(lambda: list(stub.WatchHostStats(watch, timeout=0.05))))
while True:
    try:
        parts = list(stub.Fetch(pb.FetchRequest()))
        break
    except grpc.RpcError as error:
        # The cancelled one may still be under way.
        assert error.code() == grpc.StatusCode.ABORTED, error
end = parts[-1].end
stub.Commit(pb.CommitRequest(fetch_id=end.fetch_id))
say(again=end.events, committed_twice=refused(lambda: stub.Commit(pb.CommitRequest(fetch_id=end.fetch_id))))

# Sixteen at once on one channel.
answers = []
threads = [threading.Thread(target=lambda: answers.append(stub.GetStatus(pb.GetStatusRequest()).pid)) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say(pids=sorted(set(answers)), answers=len(answers))
say(stopped=stub.Stop(pb.StopRequest()).run.stopped_ns > 0)
