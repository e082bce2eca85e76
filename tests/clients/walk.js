// A client as most people write one for Node: @grpc/grpc-js with the .proto files, over the unix socket.
//
// Usage: walk.js SOCKET FOLDER-OF-PROTO. Writes one JSON object a line; waits for a line where it wants events.
'use strict';
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const readline = require('node:readline');

const [socket, proto] = process.argv.slice(2);
const say = (what) => console.log(JSON.stringify(what));
// 64 bits are more than a number of this language holds.
const options = { keepCase: true, longs: String, oneofs: true, includeDirs: [proto] };
const { TraceControl } = grpc.loadPackageDefinition(
  loader.loadSync('nrt/trace/v1/control.proto', options),
).nrt.trace.v1;
const client = new TraceControl(`unix:${socket}`, grpc.credentials.createInsecure(), {
  'grpc.keepalive_time_ms': 1000,
});
const call = (method, request, more = {}) =>
  new Promise((resolve, reject) =>
    client[method](request, new grpc.Metadata(), more, (error, answer) => (error ? reject(error) : resolve(answer))));
const refused = (promise) =>
  promise.then(
    () => ['OK'],
    (error) => [grpc.status[error.code], error.metadata.get('nrt-status')[0] ?? null],
  );

async function walk() {
  say({ stop_of_nothing: await refused(call('Stop', {})) });
  const { run } = await call('Start', { max_events_per_nc: 4096 });
  say({ run: run.max_events_per_nc });
  const lines = readline.createInterface({ input: process.stdin });
  await new Promise((resolve) => lines.once('line', resolve));
  let records = 0;
  let end = null;
  for await (const part of client.Fetch({})) {
    if (part.part === 'records') records += part.records.packed.length / 112;
    if (part.part === 'end') end = part.end;
  }
  say({ records, events: end.events });
  // From the oldest on, until it is cancelled.
  let followed = 0;
  const stream = client.Subscribe({ from: 'SUBSCRIBE_FROM_OLDEST' });
  const ended = await new Promise((resolve) => {
    stream.on('data', (part) => {
      if (part.part === 'records') followed += part.records.packed.length / 112;
      if (followed === records) stream.cancel();
    });
    stream.on('error', (error) => resolve(grpc.status[error.code]));
    stream.on('end', () => resolve('END'));
  });
  say({ followed, ended });
  await call('Commit', { fetch_id: end.fetch_id });
  const { producers } = await call('ListProducers', {});
  say({ names: producers.map((producer) => producer.name) });
  say({ late: await refused(call('GetStatus', {}, { deadline: Date.now() - 1 })) });
  say({ stopped: (await call('Stop', {})).run.stopped_ns > 0 });
  lines.close();
  client.close();
}

walk().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
