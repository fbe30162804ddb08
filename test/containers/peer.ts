/**
 * Runs a server or a client in a container of its own, for containers.test.ts. argv has the role, the path of
 * the socket and the fabrics. The process receives its instructions and reports the results by messages.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type SessionSummary,
  stats,
} from 'rdma-rpc';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

/** The resources that a process holds. */
export interface Census {
  readonly descriptors: number;
  /** Number of mappings of shared memory, by its purpose. */
  readonly mapped: Readonly<Record<string, number>>;
  /** The files behind the memory. Two processes that have the same file share it. */
  readonly inodes: Readonly<Record<string, string>>;
  readonly queuePairs: number;
  readonly sessions: number;
  readonly memoryRegions: number;
}
export type Order = 'census' | 'calls' | 'session';
export interface Told {
  readonly listens?: true;
  readonly session?: SessionSummary;
  readonly log?: readonly string[];
  /** The number of rounds of calls that have settled. `wrong` counts answers that differ from the request. */
  readonly rounds?: number;
  readonly started?: number;
  readonly settled?: number;
  readonly wrong?: number;
  readonly census?: Census;
}

const [role, path, fabric] = process.argv.slice(2) as [string, string, NonNullable<ChannelOptions['fabric']>];
const tell = (what: Told): void => void process.send?.(what);
const lines: string[] = [];
const log = (line: string): void => void lines.push(line);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function census(): Census {
  // The memory of a session stays in use after the session has ended while the application has requests that
  // it has not released.
  collect();
  const mapped: Record<string, number> = {};
  const inodes: Record<string, string> = {};
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const [, inode, name] = /(\d+)\s+\/memfd:rdma-rpc:(.+) \(deleted\)$/.exec(line) ?? [];
    if (inode === undefined || name === undefined) continue;
    mapped[name] = (mapped[name] ?? 0) + 1;
    inodes[inode] = name;
  }
  const { queuePairs, sessions, memoryRegions } = stats();
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    mapped,
    inodes,
    queuePairs,
    sessions,
    memoryRegions,
  };
}

// The other process runs as a different user, so the permissions of the socket's file matter.
process.umask(0);
process.on('disconnect', () => process.exit(0));

if (role === 'server') {
  const server = createServer({ fabric, log }).add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }));
  process.on('message', (order: Order) => {
    if (order === 'census') tell({ census: census() });
    else if (order === 'session') tell({ log: lines });
  });
  await server.listen(`unix:${path}`);
  tell({ listens: true });
} else {
  const channel = createChannel(`unix:${path}`, { fabric, log, timeoutMs: 60_000 });
  const client = createClient(EchoDefinition, channel);
  let started = 0;
  let settled = 0;
  let wrong = 0;
  let rounds = 0;
  let going = false;
  /** Makes calls of all sizes, side by side. Each call ends, with success or an error. */
  const calls = async (): Promise<void> => {
    await Promise.all(
      [0, 8, 100, 8000, 20_000, 1_000_000].map(async (bytes) => {
        ++started;
        const payload = new Uint8Array(bytes).fill(started);
        await client.echo({ payload }).then(
          (answer) => {
            if (Buffer.compare(answer.payload, payload) !== 0) ++wrong;
          },
          () => undefined,
        );
        ++settled;
      }),
    );
    tell({ rounds: ++rounds, started, settled, wrong });
  };
  process.on('message', (order: Order) => {
    if (order === 'census') tell({ census: census() });
    else if (order === 'session') {
      void channel
        .ready()
        .then(() => tell({ ...(channel.session !== undefined && { session: channel.session }), log: lines }));
    } else if (!going) {
      going = true;
      const on = (): void => void calls().then(() => setImmediate(on));
      on();
    }
  });
  tell({ rounds: 0, started: 0, settled: 0, wrong: 0 });
}
