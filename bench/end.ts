/**
 * One of the two processes of a pair: `node end.js server|client <EndArguments as JSON>`. The server serves
 * until it is told to stop; the client measures the scenarios that it receives. pair.ts starts this program.
 */
import { endsRight, fillPayload, handlers } from './handlers.ts';
import { measureHandshakes } from './handshakes.ts';
import { measure } from './measure.ts';
import type { EndArguments, FromEnd, ToEnd } from './messages.ts';
import type { BenchClient, Peer } from './peer.ts';
import { loadPeer } from './peers.ts';
import type { Scenario } from './scenarios.ts';

const send = (message: FromEnd): void => {
  process.send?.(message);
};
const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

async function server(options: EndArguments): Promise<number | undefined> {
  const peer = await loadPeer(options.peer);
  const serving = await peer.serve(options, handlers);
  process.on('message', async (message: ToEnd) => {
    if (message.type !== 'stop') return;
    await serving.close();
    process.exit(0);
  });
  return serving.port;
}

/** Opens a connection in the way in which the scenario counts connections. */
async function connected(
  peer: Peer,
  options: EndArguments,
  { kind, payloadBytes }: Scenario,
): Promise<BenchClient> {
  const one = await peer.connect(options);
  if (kind === 'handshakes') return one;
  const payload = one.buffer(0, payloadBytes);
  fillPayload(payload);
  const answer = await one.echo({ payload, id: 1 }, 0);
  if (!endsRight(answer.payload, payloadBytes)) throw new Error('the answer differs from the request');
  return one;
}

async function client(options: EndArguments): Promise<undefined> {
  const peer = await loadPeer(options.peer);
  const clients: BenchClient[] = [await peer.connect(options)];
  process.on('message', async (message: ToEnd) => {
    if (message.type === 'stop') {
      await Promise.all(clients.map((each) => each.close()));
      process.exit(0);
    }
    try {
      if (message.type === 'open') {
        await clients[0]!.more?.(message.connections);
        return send({ type: 'opened' });
      }
      const { scenario, window, serverPid } = message;
      if (scenario.kind === 'handshakes' || scenario.kind === 'opens') {
        // Closing the last connection is part of the measurement.
        const opens = scenario.kind === 'opens' ? clients.splice(0) : [];
        await Promise.all(opens.map((each) => each.close()));
        const pids = [process.pid, serverPid] as const;
        const connect = () => connected(peer, options, scenario);
        const measurement = await measureHandshakes(connect, scenario.inFlight, window, pids);
        return send({ type: 'measured', measurement });
      }
      while (clients.length < scenario.sessions) clients.push(await peer.connect(options));
      const measurement = await measure(clients.slice(0, scenario.sessions), scenario, window, [
        process.pid,
        serverPid,
      ]);
      send({ type: 'measured', measurement });
    } catch (error) {
      send({ type: 'failed', reason: reasonOf(error) });
    }
  });
}

const role = process.argv[2] === 'server' ? server : client;
process.on('disconnect', () => process.exit(1));
role(JSON.parse(process.argv[3] ?? '{}') as EndArguments).then(
  (port) => send({ type: 'ready', port }),
  (error: unknown) => {
    send({ type: 'failed', reason: reasonOf(error) });
    process.exitCode = 1;
    process.disconnect();
  },
);
