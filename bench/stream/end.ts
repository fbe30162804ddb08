/**
 * One of the two processes of a pair: `node end.js server|client PEER SOCKET`. The server serves until it is
 * told to stop; the client measures the scenarios that it receives. main.ts starts this program.
 */
import type { Window } from '../measure.ts';
import { packageRoot } from '../paths.ts';
import { measure, type StreamMeasurement } from './measure.ts';
import type { StreamPeer } from './peer.ts';
import type { StreamScenario } from './scenarios.ts';

export type ToEnd =
  | { type: 'stop' }
  | { type: 'run'; scenario: StreamScenario; window: Window; serverPid: number };
export type FromEnd =
  | { type: 'ready' }
  | { type: 'failed'; reason: string }
  | { type: 'measured'; measurement: StreamMeasurement };

const [role, name, socket = ''] = process.argv.slice(2);
const send = (message: FromEnd): void => void process.send?.(message);
const failed = (error: unknown): void =>
  send({ type: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) });

async function load(): Promise<StreamPeer> {
  if (name === 'rdma-rpc') return (await import('./ours.ts')).ours;
  return ((await import(`${packageRoot}/bench/peers/${name}-stream.mjs`)) as { peer: StreamPeer }).peer;
}

async function server(peer: StreamPeer): Promise<() => Promise<void>> {
  const serving = await peer.serve(socket);
  return () => serving.close();
}

async function client(peer: StreamPeer): Promise<() => Promise<void>> {
  const connected = await peer.connect(socket);
  process.on('message', (message: ToEnd) => {
    if (message.type !== 'run') return;
    const { scenario, window, serverPid } = message;
    measure(connected, scenario, window, [process.pid, serverPid]).then(
      (measurement) => send({ type: 'measured', measurement }),
      failed,
    );
  });
  return () => connected.close();
}

process.on('disconnect', () => process.exit(1));
try {
  const peer = await load();
  const close = role === 'server' ? await server(peer) : await client(peer);
  process.on('message', async (message: ToEnd) => {
    if (message.type !== 'stop') return;
    await close();
    process.exit(0);
  });
  send({ type: 'ready' });
} catch (error) {
  failed(error);
}
