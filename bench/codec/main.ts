/**
 * `node dist/bench/codec/main.js`: nanoseconds per message of our codec and of the two that TypeScript people use, in one run, rounds interleaved,
 * medians. Ours encodes into memory that is there already, as calls do; the peers allocate, since they offer nothing else.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type MessageType, Sink, Source } from 'rdma-rpc/codec';
import { type Peer, protobufEs, protobufjsStatic } from './peers.ts';
import { cases } from './values.ts';

const rounds = 7;
const roundMs = 60;

interface Candidate {
  readonly name: string;
  readonly encode: () => unknown;
  readonly decode: () => unknown;
}

/** Kept where the optimiser cannot see that nobody reads it. */
const kept: { value: unknown } = { value: undefined };

/** CPU time of this process, garbage collection included: on a shared machine it moves far less than the clock. */
function nanoseconds(run: () => unknown): number {
  let calls = 0;
  const start = process.cpuUsage();
  for (;;) {
    for (let i = 0; i < 1000; i++) kept.value = run();
    calls += 1000;
    const { user, system } = process.cpuUsage(start);
    if (user + system >= roundMs * 1000) return ((user + system) * 1000) / calls;
  }
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function ours<T, Init>(type: MessageType<T, Init>, message: Init): Candidate[] {
  const sink = new Sink();
  const source = new Source();
  const slot = new Uint8Array(8192);
  const encoded = type.encode(message);
  const received = new Uint8Array(8192);
  received.set(encoded);
  source.reset(received);
  return [
    {
      name: 'rdma-rpc, into a slot',
      encode: () => {
        sink.reset(slot);
        type.bound(message, sink);
        return type.encodeTo(message, sink, 0);
      },
      decode: () => type.decodeFrom(source, 0, encoded.length),
    },
    {
      name: 'rdma-rpc, encode/decode',
      encode: () => type.encode(message),
      decode: () => type.decode(encoded),
    },
  ];
}

function peerCandidate(peer: Peer, typeName: string, encoded: Uint8Array): Candidate[] {
  if (peer.codec === undefined) return [];
  const codec = peer.codec(typeName);
  const value = codec.convert(encoded);
  return [{ name: peer.name, encode: () => codec.encode(value), decode: () => codec.decode(encoded) }];
}

function packageRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, 'package.json'))) directory = dirname(directory);
  return directory;
}

const root = packageRoot();
const proto = join(root, 'bench', 'codec', 'codec.proto');
const peers = [await protobufjsStatic(root, proto), await protobufEs(root, proto)];
for (const peer of peers) if (peer.codec === undefined) console.log(`${peer.name}: not run (${peer.reason})`);

console.log(`ns of CPU time per message, median of ${rounds} rounds, Node ${process.version}\n`);
for (const { name, type, message } of cases) {
  const codec = type as MessageType<unknown, unknown>;
  const encoded = codec.encode(message);
  const candidates = [
    ...ours(codec, message),
    ...peers.flatMap((peer) => peerCandidate(peer, codec.typeName, encoded)),
  ];
  const results = candidates.map(() => ({ encode: [] as number[], decode: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    candidates.forEach((candidate, i) => {
      results[i]?.encode.push(nanoseconds(candidate.encode));
      results[i]?.decode.push(nanoseconds(candidate.decode));
    });
  }
  const medians = results.map((result) => ({ encode: median(result.encode), decode: median(result.decode) }));
  const own = medians[0] ?? { encode: Number.NaN, decode: Number.NaN };
  console.log(
    `${name} (${encoded.length} B)`.padEnd(28),
    'encode'.padStart(8),
    'ratio'.padStart(7),
    'decode'.padStart(8),
    'ratio'.padStart(7),
  );
  candidates.forEach((candidate, i) => {
    const { encode = Number.NaN, decode = Number.NaN } = medians[i] ?? {};
    const cells = [
      encode.toFixed(0).padStart(8),
      (encode / own.encode).toFixed(1).padStart(7),
      decode.toFixed(0).padStart(8),
      (decode / own.decode).toFixed(1).padStart(7),
    ];
    console.log(`  ${candidate.name.padEnd(26)}`, ...cells);
  });
}
