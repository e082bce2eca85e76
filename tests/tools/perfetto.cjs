#!/usr/bin/env node
// Asks Perfetto's Trace Processor about a trace, without a network.
//
//   node perfetto.cjs ENGINE_BUNDLE TRACE QUERY...
//
// The answer is JSON: {"errors":[...],"tables":[{"columns":[...],"rows":[[...],...],"error":...},...]}, a table for each query.
// Whole numbers are strings of digits where JavaScript would round them. `.ci/perfetto` installs the engine.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const [bundle, trace, ...queries] = process.argv.slice(2);
if (!bundle || !trace) {
  console.error('usage: perfetto.cjs ENGINE_BUNDLE TRACE QUERY...');
  process.exit(2);
}

// The engine is made for a web worker: it takes requests on a port, and loads its code from beside itself.
function start(onAnswer) {
  const folder = path.dirname(path.resolve(bundle));
  const scope = { location: { href: `file://${folder}/` }, importScripts() {} };
  class LocalRequest {
    open(_method, url) { this.file = path.join(folder, path.basename(url)); }
    send() {
      const bytes = fs.readFileSync(this.file);
      this.status = 200;
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    }
  }
  const silent = { log() {}, info() {}, warn() {}, error: console.error };
  const names = ['self', 'process', 'WorkerGlobalScope', 'XMLHttpRequest', 'importScripts', 'console', 'window', 'document', 'location'];
  const values = [scope, undefined, function () {}, LocalRequest, () => {}, silent, undefined, undefined, scope.location];
  new Function(...names, fs.readFileSync(bundle, 'utf8'))(...values);
  const port = { onmessage: null, postMessage: (bytes) => onAnswer(Buffer.from(bytes)) };
  return new Promise((ready, failed) => {
    let looks = 0;
    const look = () => {
      if (port.onmessage) return setTimeout(() => ready(port), 300);
      if (++looks > 1500) return failed(new Error('the engine does not start'));
      setTimeout(look, 20);
    };
    scope.onmessage({ data: port });
    look();
  });
}

// Protocol buffers, as far as the engine's requests and answers need them.
function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  while (rest > 127n) { bytes.push(Number(rest & 127n) | 128); rest >>= 7n; }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const message = (field, body) => {
  const bytes = Buffer.from(body);
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
};
function parse(bytes) {
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const fields = [];
  while (at < bytes.length) {
    const tag = Number(next());
    const kind = tag & 7;
    if (kind === 0) { fields.push([tag >> 3, next()]); continue; }
    const size = kind === 2 ? Number(next()) : kind === 1 ? 8 : 4;
    fields.push([tag >> 3, bytes.subarray(at, at + size)]);
    at += size;
  }
  return fields;
}
function numbers(packed) {
  const values = [];
  let value = 0n;
  let shift = 0n;
  for (const byte of packed) {
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) { values.push(BigInt.asIntN(64, value)); value = 0n; shift = 0n; }
  }
  return values;
}

// A batch holds one row of kinds and, kind by kind, the values.
function cells(batch) {
  let kinds = [];
  const whole = [];
  const real = [];
  const blobs = [];
  let texts = [];
  for (const [field, body] of parse(batch)) {
    if (field === 1) kinds = kinds.concat([...body]);
    else if (field === 2) whole.push(...numbers(body));
    else if (field === 3) for (let i = 0; i < body.length; i += 8) real.push(body.readDoubleLE(i));
    else if (field === 4) blobs.push(body.toString('hex'));
    else if (field === 5) texts = body.toString().split('\0');
  }
  const exact = (n) => (Number.isSafeInteger(Number(n)) ? Number(n) : n.toString());
  return kinds.map((kind) => {
    if (kind === 2) return exact(whole.shift());
    if (kind === 3) return real.shift();
    if (kind === 4) return texts.shift();
    if (kind === 5) return blobs.shift();
    return null;
  });
}

async function main() {
  const APPEND = 1, FINALIZE = 2, QUERY = 3;
  const answers = [];
  const port = await start((answer) => answers.push(answer));
  let count = 0;
  const ask = (method, argument = Buffer.alloc(0)) => {
    const body = Buffer.concat([number(1, count++), number(2, method), argument]);
    port.onmessage({ data: new Uint8Array(message(1, body)) });
    return parse(Buffer.concat(answers.splice(0))).flatMap(([, answer]) => parse(answer));
  };
  const result = { errors: [], tables: [] };
  const note = (fields) => {
    for (const [field, body] of fields) {
      if (field === 5) result.errors.push(body.toString());
      if (field === 201) for (const [inner, text] of parse(body)) if (inner === 2) result.errors.push(text.toString());
    }
  };
  const bytes = fs.readFileSync(trace);
  for (let at = 0; at < bytes.length; at += 1 << 20) note(ask(APPEND, message(101, bytes.subarray(at, at + (1 << 20)))));
  note(ask(FINALIZE));
  for (const query of queries) {
    const table = { columns: [], rows: [] };
    let row = [];
    for (const [field, body] of ask(QUERY, message(103, message(1, query)))) {
      if (field !== 203) continue;
      for (const [inner, value] of parse(body)) {
        if (inner === 1) table.columns.push(value.toString());
        else if (inner === 2) table.error = value.toString();
        else if (inner === 3) row = row.concat(cells(value));
      }
    }
    for (let at = 0; table.columns.length && at < row.length; at += table.columns.length) {
      table.rows.push(row.slice(at, at + table.columns.length));
    }
    result.tables.push(table);
  }
  process.stdout.write(JSON.stringify(result), () => process.exit(0));
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
