/**
 * Opens the two ends of the interoperability cases: a server, in a separate process or in this one, and
 * clients here.
 */
import { type ChildProcess, fork } from 'node:child_process';
import {
  type Channel,
  type ChannelOptions,
  type Client,
  createChannel,
  createClient,
  createInProcessChannel,
  type InProcessOptions,
  type ServerOptions,
} from 'rdma-rpc';
import { compiled, exited, nextMessage } from '../runtime/process/processes.ts';
import { AbsentDefinition, InteropDefinition } from './gen/interop.rdma.ts';
import type { Command, Report } from './server.ts';
import { emptyLog, type InteropLog, interopHandlers } from './service.ts';

/** The interface that a case uses. */
export interface Peer {
  readonly channel: Channel;
  readonly client: Client<typeof InteropDefinition>;
  readonly absent: Client<typeof AbsentDefinition>;
  /** Returns another connection to the same server. */
  another(): Channel;
  log(): Promise<InteropLog>;
  end(): Promise<void>;
}

function over(channel: Channel): Pick<Peer, 'channel' | 'client' | 'absent'> {
  return {
    channel,
    client: createClient(InteropDefinition, channel),
    absent: createClient(AbsentDefinition, channel),
  };
}

/** Opens both ends in this process, on the simulated fabric. */
export function openInProcess(options: InProcessOptions = {}): Promise<Peer> {
  const log = emptyLog();
  const open = (): Channel =>
    createInProcessChannel((server) => server.add(InteropDefinition, interopHandlers(log)), options);
  const channel = open();
  return Promise.resolve({
    ...over(channel),
    another: open,
    log: () => Promise.resolve({ ...log }),
    end: () => channel.close(),
  });
}

/** A server process. */
export class InteropServer {
  readonly child: ChildProcess;
  readonly address: string;

  private constructor(child: ChildProcess, address: string) {
    this.child = child;
    this.address = address;
  }

  static async start(address = '127.0.0.1:0', options: ServerOptions = {}): Promise<InteropServer> {
    const child = fork(compiled('server', 'interop'), [address, JSON.stringify(options)]);
    return new InteropServer(child, await nextMessage<string>(child));
  }

  report(): Promise<Report> {
    const answer = nextMessage<Report>(this.child);
    this.child.send({ do: 'report' } satisfies Command);
    return answer;
  }

  /** Resolves with the server's exit code. */
  shutdown(graceMs = 5000): Promise<number | null> {
    const exit = exited(this.child);
    this.child.send({ do: 'shutdown', graceMs } satisfies Command);
    return exit;
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const exit = exited(this.child);
    this.child.kill(signal);
    return exit;
  }
}

/** Opens a server process, and a client in this process. */
export async function openProcesses(
  address?: string,
  ofServer: ServerOptions = {},
  ofChannel: ChannelOptions = {},
): Promise<Peer> {
  const server = await InteropServer.start(address, ofServer);
  const open = (): Channel => createChannel(server.address, ofChannel);
  const channel = open();
  return {
    ...over(channel),
    another: open,
    log: async () => (await server.report()).log,
    end: async () => {
      await channel.close();
      await server.kill();
    },
  };
}
