/**
 * Makes real calls of given sizes. A server and a client in this process, each with its own context, make the
 * calls on the requested fabric. The operations of both sides are read from their counters, so the result
 * shows the runtime's decisions rather than a copy of its rules. `rdma-rpc explain` uses this file.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openContexts } from '../../runtime/boundary/contexts.ts';
import type { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { createChannel } from '../../runtime/client/channel.ts';
import { createClient } from '../../runtime/client/client.ts';
import { BytesValue, StringValue } from '../../runtime/codec/google/protobuf/wrappers.rdma.ts';
import { methodId } from '../../runtime/codec/service/method-id.ts';
import type { MessageType, MethodDefinition, ServiceDefinition } from '../../runtime/codec/types.ts';
import type { SecurityLevel } from '../../runtime/control/security-level.ts';
import { type Fabric, fabrics } from '../../runtime/fabrics.ts';
import type { NativeContext, Stats, VerbsCapabilities } from '../../runtime/native/native.ts';
import { createServer } from '../../runtime/server/server.ts';

/** The kind of field that gives a message its size. */
export type Carrier = 'bytes' | 'text';

/** The size and kind of a message. */
export interface Sized {
  readonly bytes: number;
  readonly carrier: Carrier;
}

/** The two sides to create. */
export interface Pair {
  readonly fabric: Fabric;
  /** The names of the devices, for verbs. By default the first usable device is used. */
  readonly clientDevice?: string | undefined;
  readonly serverDevice?: string | undefined;
  /** The minimum security of the session between the two. */
  readonly require?: SecurityLevel | undefined;
}

export interface Trial extends Pair {
  readonly request: Sized;
  readonly response: Sized;
}

/** The operations of one side for a message. */
export type Work = { readonly [K in (typeof counted)[number]]: number };

const counted = [
  'inlineSends',
  'eagerSends',
  'segmentedMessages',
  'bulkReads',
  'bulkReadBytes',
  'bulkWrites',
  'bulkWriteBytes',
  'replyBuffersPredicted',
  'replyBuffersAsked',
  'mrHits',
  'mrMisses',
] as const satisfies readonly (keyof Stats)[];

export interface Half {
  readonly client: Work;
  readonly server: Work;
}

/** The operations of both sides for a call. */
export interface Call {
  readonly request: Half;
  readonly response: Half;
}

/** The two sides, once they are connected. */
export interface Sides {
  readonly fabric: Trial['fabric'];
  readonly clientDevice: string;
  readonly serverDevice: string;
  readonly exposure: string;
  readonly security: SecurityLevel;
  readonly capabilities: VerbsCapabilities;
}

export interface Outcome extends Sides {
  /** The first call, when the size of responses is unknown, and a later call. */
  readonly calls: readonly Call[];
}

const path = 'rdma_rpc.explain.Trial/Call';
const types = { bytes: BytesValue, text: StringValue } as const;
const messageOf = ({ bytes, carrier }: Sized): object =>
  carrier === 'bytes' ? { value: new Uint8Array(bytes) } : { value: 'x'.repeat(bytes) };

function difference(after: Stats, before: Stats): Work {
  return Object.fromEntries(counted.map((name) => [name, after[name] - before[name]])) as Work;
}

/**
 * Returns the contexts of client and server. The client's context is that of the channel. The server's
 * context is the only other context that was created after `already` was taken. `already` contains the
 * contexts of earlier channels.
 */
function contextsOf(
  { context }: { readonly context: FabricContext },
  already: readonly FabricContext[],
): [NativeContext, NativeContext] {
  const other = openContexts().find(
    (each) => each !== context && !already.includes(each) && each.native.stats().sessions > 0,
  );
  if (other === undefined) throw new Error('the two sides have no contexts of their own');
  return [context.native, other.native];
}

/** Makes one call between the two sides, and returns their operations. */
export type Caller = (request: number, response: number) => Promise<Call>;

/**
 * Creates a pair of sides for `use`. The carriers are the fields that give requests and responses their
 * sizes. Throws an RpcError, or an Error, when the fabric is unavailable or refuses a call of the requested
 * size.
 */
export async function withPair<T>(
  pair: Pair,
  [request, response]: readonly [Carrier, Carrier],
  use: (call: Caller, sides: Sides) => Promise<T>,
): Promise<T> {
  const { fabric } = pair;
  const already = openContexts();
  const method: MethodDefinition = {
    name: 'Call',
    fullName: path,
    id: methodId(path),
    input: types[request] as MessageType<unknown, unknown>,
    requestStream: false,
    output: types[response] as MessageType<unknown, unknown>,
    responseStream: false,
    options: {},
  };
  const service = { name: 'Trial', fullName: 'rdma_rpc.explain.Trial', methods: { call: method } };
  const device = (name: string | undefined) => (name === undefined ? {} : { verbs: { device: name } });
  const log = (): void => undefined;
  const { require = 'none' } = pair;
  // Authentication does not matter here. A new secret keeps the path between the two sides private.
  const psk = { explain: randomBytes(32) };
  const isUnix = fabrics[fabric].dials === 'path';
  const secure = require === 'none' ? {} : { security: { require }, ...(!isUnix && { tls: { psk } }) };
  const isolated = { fabric, isolation: 'session', log, ...secure } as const;
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-explain-'));
  const server = createServer({ ...isolated, ...device(pair.serverDevice) });
  let answer: object = {};
  let handled = (): void => undefined;
  server.add(
    service as ServiceDefinition,
    {
      call: () => {
        handled();
        return answer;
      },
    } as never,
  );
  try {
    const address = await server.listen(isUnix ? `unix:${join(folder, 's')}` : '127.0.0.1:0');
    const channel = createChannel(address, { ...isolated, ...device(pair.clientDevice) });
    try {
      await channel.ready();
      const { device: clientDevice, exposure, security } = channel.session!;
      const [near, far] = contextsOf(channel as unknown as { readonly context: FabricContext }, already);
      const client = createClient(service as ServiceDefinition, channel) as unknown as {
        call(message: object): Promise<unknown>;
      };
      const call: Caller = async (requestBytes, responseBytes) => {
        const message = messageOf({ bytes: requestBytes, carrier: request });
        answer = messageOf({ bytes: responseBytes, carrier: response });
        const before = [near.stats(), far.stats()] as const;
        let between = before;
        handled = () => {
          between = [near.stats(), far.stats()];
        };
        await client.call(message);
        const after = [near.stats(), far.stats()] as const;
        return {
          request: { client: difference(between[0], before[0]), server: difference(between[1], before[1]) },
          response: { client: difference(after[0], between[0]), server: difference(after[1], between[1]) },
        };
      };
      const serverDevice = server.sessions[0]?.device ?? clientDevice;
      return await use(call, {
        fabric,
        clientDevice,
        serverDevice,
        exposure,
        security,
        capabilities: near.capabilities,
      });
    } finally {
      await channel.close();
    }
  } finally {
    await server.shutdown({ graceMs: 0 });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes one call twice. Throws the errors of `withPair`. */
export function runTrial({ request, response, ...pair }: Trial): Promise<Outcome> {
  return withPair(pair, [request.carrier, response.carrier], async (call, sides) => {
    const first = await call(request.bytes, response.bytes);
    return { ...sides, calls: [first, await call(request.bytes, response.bytes)] };
  });
}
