/**
 * The compared frameworks, by name. A process loads only the framework that it runs.
 */
import {
  poolBuffers as limitBuffers,
  inlineMax as limitInlineMax,
  slots as limitSlots,
} from './limit/slot.ts';
import { packageRoot } from './paths.ts';
import type { Peer } from './peer.ts';
import type { Scenario } from './scenarios.ts';

/**
 * The limit's calls must be fewer than its ring has slots, because a producer of the limit would otherwise
 * overwrite an unread slot.
 */
const limitCallsMax = limitSlots / 2;

const loaders: Readonly<Record<string, () => Promise<Peer>>> = {
  'quick start': async () => (await import('./plain.ts')).quickStart,
  'quick start, new': async () => (await import('./plain.ts')).newBuffers,
  'rdma-rpc': async () => (await import('./ours.ts')).ours,
  'shm-fd': async () => (await import('./ours.ts')).byDescriptors,
  sealed: async () => (await import('./ours.ts')).sealed,
  tls: async () => (await import('./ours.ts')).tls,
  'tls bare': async () => (await import('./bare-tls.ts')).bareTls,
  limit: async () => (await import('./limit/limit.ts')).limit,
  'grpc-js': () => external('grpc-js'),
  'grpc-js tls': async () => ({ ...(await external('grpc-js')), name: 'grpc-js tls', tls: true }),
  'connect-node': () => external('connect-node'),
  'net+protobufjs': () => external('net-protobufjs'),
  'net+msgpackr': () => external('net-msgpackr'),
  capnweb: () => external('capnweb'),
  MessagePort: async () => (await import('./message-port.ts')).messagePort,
  'net bare': () => external('net-bare'),
  'C sender': async () => (await import('./sender.ts')).sender,
};

export const peerNames: readonly string[] = Object.keys(loaders);
/**
 * The peers that are written as in the quick start. For comparison, the list also has our peer that returns
 * all memory, and the peer that most users would choose instead of this package.
 */
const plainPeers: readonly string[] = ['quick start', 'quick start, new', 'rdma-rpc', 'grpc-js'];
/** The peers that show the shape of a curve. */
const stepPeers: readonly string[] = ['rdma-rpc', 'limit', 'grpc-js'];

function fitsLimit({ inFlight, payloadBytes, mixedBytes, sessions }: Scenario): boolean {
  if (mixedBytes !== 0 || sessions > 1) return false;
  return inFlight <= (payloadBytes <= limitInlineMax ? limitCallsMax : limitBuffers);
}

/**
 * Returns whether a peer can run a scenario. Bare sockets answer only one question, because they are not an
 * RPC that could be compared in other scenarios.
 */
export function fits(peer: string, scenario: Scenario): boolean {
  const { name, kind, network, payloadBytes, besideBytes, sessions, plain, step } = scenario;
  if (kind === 'rest') return peer === 'quick start' || peer === 'grpc-js';
  if (plain) return plainPeers.includes(peer) || (peer === 'MessagePort' && network === 'host');
  if (peer.startsWith('quick start')) return false;
  if (step && !stepPeers.includes(peer)) return false;
  if (kind === 'opens') return peer === 'rdma-rpc' || peer === 'grpc-js';
  if (peer === 'limit' && !fitsLimit(scenario)) return false;
  if (peer === 'net bare') return name.endsWith('asleep-32B-x1') || name === 'tcp-echo-32B-x1';
  // Only the performance of small calls is measured over shm-fd; everything else is the same as with access
  // by /proc.
  if (peer === 'shm-fd') return network === 'host' && payloadBytes === 32 && besideBytes === 0;
  if (kind === 'handshakes') return peer === 'rdma-rpc' || peer === 'tls' || peer === 'tls bare';
  if (peer === 'tls bare') return false;
  if (peer === 'MessagePort') return network === 'host' && sessions === 1;
  // This peer sends 16 MiB as a string of 22 MB, which takes seconds on each side.
  if (peer === 'capnweb') return network === 'host' && payloadBytes <= 1 << 20 && besideBytes === 0;
  const simple = besideBytes === 0 && (payloadBytes === 32 || payloadBytes === 1 << 20);
  if (peer === 'sealed') return simple;
  if (peer === 'tls') return network === 'tcp' && payloadBytes === 32 && besideBytes === 0;
  if (peer === 'grpc-js tls') return network === 'tcp' && simple;
  if (network === 'host') return peer !== 'C sender';
  if (peer === 'C sender') return name.endsWith('1MiB-x8');
  if (kind === 'sessions') return peer === 'rdma-rpc';
  // These peers put many small calls into one write, without deadlines, errors or flow control. They show the
  // kernel's cost of such calls.
  if (peer === 'net+protobufjs' || peer === 'net+msgpackr') return name === 'tcp-echo-32B-x256';
  return peer === 'rdma-rpc' || peer === 'grpc-js';
}

/** Peers that spin after traffic when `polling` is 'adaptive'; the other peers wait in the kernel. */
export const pollingPeers: readonly string[] = [
  ...['quick start', 'quick start, new', 'rdma-rpc', 'shm-fd', 'sealed', 'tls'],
  'limit',
];

async function external(file: string): Promise<Peer> {
  const module = (await import(`${packageRoot}/bench/peers/${file}.mjs`)) as { peer: Peer };
  return module.peer;
}

/** Throws for a name that is not one of `peerNames`, and when the peer's packages are not installed. */
export async function loadPeer(name: string): Promise<Peer> {
  const load = loaders[name];
  if (load === undefined) throw new Error(`no peer "${name}"; available: ${peerNames.join(', ')}`);
  return await load();
}
