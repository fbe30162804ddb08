/**
 * Lists the fabrics over which a client reaches a server in one process. Each test of calls runs over all of
 * them.
 */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Channel, type ChannelOptions, createChannel, createServer, type ServerOptions } from 'rdma-rpc';
import { inProcessChannel } from '../../runtime/in-process.ts';
import { everything } from '../extent.ts';
import { type EchoLog, echoHandlers } from './echo-service.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

export interface World {
  readonly channel: Channel;
  readonly log: EchoLog;
  close(): Promise<void>;
}

/** The ways within one process, with and without the addon. */
export const inProcessWays = { 'in process': 'sim', 'in process, loopback': 'loopback' } as const;
export type InProcessWay = keyof typeof inProcessWays;
export const isInProcess = (way: Way): way is InProcessWay => way in inProcessWays;

export type Way = InProcessWay | 'shm over tcp' | 'shm over unix' | 'shm-fd' | 'tcp';
/** The ways of a brief run: one fabric without native code, and one of each kind of native fabric. */
export const ways: readonly Way[] = everything
  ? ['in process', 'in process, loopback', 'shm over tcp', 'shm over unix', 'shm-fd', 'tcp']
  : ['in process, loopback', 'shm over unix', 'tcp'];

/** Returns the fabric option of servers and channels for this transport. */
export const fabricOf = (way: Way): ChannelOptions => ({
  fabric: way === 'tcp' || way === 'shm-fd' ? way : 'shm',
});

/** Returns the address at which a server of a way listens. */
export const placeOf = (way: Way, path: string): string =>
  way === 'shm over unix' || way === 'shm-fd' ? `unix:${path}` : '127.0.0.1:0';

let sockets = 0;
export function socketPath(): string {
  return join(tmpdir(), `rdma-rpc-test-${process.pid}-${++sockets}.sock`);
}

export async function openWorld(
  way: Way,
  server: ServerOptions = {},
  channel: ChannelOptions = {},
): Promise<World> {
  const log: EchoLog = { started: 0, aborted: [] };
  if (isInProcess(way)) {
    const local = inProcessChannel(
      (s) => s.add(EchoDefinition, echoHandlers(log)),
      { ...server, ...channel },
      inProcessWays[way],
    );
    return { channel: local, log, close: () => local.close() };
  }
  const path = socketPath();
  const remote = createServer({ ...fabricOf(way), ...server }).add(EchoDefinition, echoHandlers(log));
  const address = await remote.listen(placeOf(way, path));
  const local = createChannel(address, { ...fabricOf(way), ...channel });
  return {
    channel: local,
    log,
    close: async () => {
      await local.close();
      await remote.shutdown({ graceMs: 0 });
      rmSync(path, { force: true });
    },
  };
}
