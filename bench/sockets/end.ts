/**
 * One of the two processes of a measurement, started by main.ts. `node end.js server SCENARIO LIBRARY PATH`
 * serves until it is killed, and prints its address. `node end.js client SCENARIO LIBRARY ADDRESS WINDOW PID`
 * measures and ends. PID is the server's.
 */
import * as http from 'node:http';
import type { Duplex } from 'node:stream';
import type { Window } from '../measure.ts';
import { dial, listen } from './dial.ts';
import { measure, type SocketMeasurement } from './measure.ts';
import { type Library, type SocketScenario, socketScenarios } from './scenarios.ts';

export type FromEnd =
  | { type: 'ready'; address: string }
  | { type: 'failed'; reason: string }
  | { type: 'measured'; measurement: SocketMeasurement };

const [role, name, library, where = '', window = '', server = ''] = process.argv.slice(2);
const scenario = socketScenarios.find((each) => each.name === name)!;
const send = (message: FromEnd): Promise<void> =>
  new Promise((resolve) => void process.send?.(message, undefined, undefined, () => resolve()));

/** Returns the server's action for each connection. */
function serving({ kind, bytes }: SocketScenario): (socket: Duplex) => void {
  if (kind === 'ping')
    return (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => void socket.write(chunk));
    };
  if (kind === 'write')
    return (socket) => {
      let read = 0;
      socket.on('data', (chunk: Buffer) => {
        read += chunk.byteLength;
      });
      socket.once('end', () => socket.end(String(read)));
    };
  const body = Buffer.alloc(bytes, 7);
  const pages = http.createServer((_request, response) => response.end(body));
  return (socket) => void pages.emit('connection', socket);
}

process.on('disconnect', () => process.exit(1));
try {
  const by = library as Library;
  if (role === 'server') {
    await send({ type: 'ready', address: await listen(by, scenario, where, serving(scenario)) });
  } else {
    const open = (): Duplex => dial(by, scenario, where);
    const pids = [process.pid, Number(server)];
    await send({
      type: 'measured',
      measurement: await measure(scenario, open, JSON.parse(window) as Window, pids),
    });
    process.exit(0);
  }
} catch (error) {
  await send({
    type: 'failed',
    reason: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  process.exit(1);
}
