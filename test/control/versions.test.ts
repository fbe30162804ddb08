/**
 * Tests peers of other releases, with other wire versions or other versions of a fabric. Such peers are
 * refused, or connect on another fabric. Neither side reads memory or bytes whose layout it does not know.
 * The tests change the peers' frames and address blobs on the way, so that each side acts as a different
 * release.
 */
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type RpcError,
  type Server,
  Status,
  stats,
} from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { type Frame, feature } from '../../runtime/control/frames.ts';
import { caught, until } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { socketPath } from '../runtime/world.ts';
import { type Change, changedWay, type Way } from './changing-relay.ts';

let server: Server | undefined;
let way: Way | undefined;
let channel: Channel | undefined;
const serverLog: string[] = [];
const clientLog: string[] = [];
afterEach(async () => {
  await channel?.close();
  await server?.shutdown({ graceMs: 0 });
  await way?.end();
  serverLog.length = 0;
  clientLog.length = 0;
});

/** Makes a channel. The frames of the channel and those of its server are changed on the way. */
async function through(change: Change, options: ChannelOptions = {}, at = '127.0.0.1:0'): Promise<Channel> {
  server = createServer({ log: (line) => serverLog.push(line) });
  server.add(EchoDefinition, { echo: ({ number, payload }) => ({ number, payload: payload.slice() }) });
  way = await changedWay(await server.listen(at), change);
  channel = createChannel(way.address, { log: (line) => clientLog.push(line), ...options });
  return channel;
}

async function answers(from: Channel): Promise<void> {
  const { echo } = createClient(EchoDefinition, from);
  expect((await echo({ number: 7 })).number).toBe(7);
  const { payload } = await echo({ payload: new Uint8Array(300_000).fill(9) });
  expect([payload.length, payload.at(-1)]).toEqual([300_000, 9]);
}

const refusal = (from: Channel): Promise<RpcError> => caught(createClient(EchoDefinition, from).echo({}));

const of =
  (type: Frame['type'], changes: (frame: never) => object): Change =>
  (frame) =>
    frame.type === type ? { ...frame, ...changes(frame as never) } : frame;

describe('wire versions', () => {
  test('a client with this version and newer ones is served', async () => {
    await answers(await through(of('hello', () => ({ versionMax: 7 }))));
  });

  test('a client with a single version is served, too', async () => {
    await answers(await through(of('hello', () => ({ versionMax: undefined }))));
  });

  test.each<[string, Change, string]>([
    [
      'a client of newer ones only',
      // The fields of the frames may differ.
      of('hello', () => ({ version: 2, versionMax: 3, limits: 'in another form' })),
      'a hello of wire versions 2 to 3, but the server speaks wire version 1; use the same rdma-rpc release on both sides',
    ],
    [
      'a client of another one',
      of('hello', () => ({ version: 9, versionMax: undefined })),
      'a hello of wire version 9, but the server speaks wire version 1',
    ],
    [
      'a server that has not chosen ours',
      of('welcome', () => ({ version: 2, features: 'in another form' })),
      'a welcome of wire version 2, but the client speaks wire version 1',
    ],
  ])('%s: calls are not run, and fail with both versions', async (_, change, text) => {
    const before = stats().queuePairs;
    const error = await refusal(await through(change));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(error.message).toContain(text);
    await until(() => stats().queuePairs === before);
  });
});

/** Sets the version of an address blob of shared memory, which is the second word. */
function withVersion(address: Uint8Array, version: number): Uint8Array {
  const changed = Uint8Array.from(address);
  new DataView(changed.buffer).setUint32(4, version, true);
  return changed;
}

type Blob = { readonly address: Uint8Array; readonly fabric?: string };
type Offers = { readonly fabrics: readonly { readonly name: string }[]; readonly features: number };
const isShm = (name: string): boolean => name === 'shm' || name === 'shm-fd';

/** Acts as a client that states version 9 of shared memory in its frame. */
const says: Change = of('hello', ({ fabrics }: Offers) => ({
  fabrics: fabrics.map((offer) => (isShm(offer.name) ? { ...offer, version: 9 } : offer)),
}));
/**
 * Acts as a client that states its version only in its address, like a release that does not send the
 * versions of fabrics.
 */
const tells: Change = (frame) => {
  if (frame.type === 'hello')
    return { ...frame, fabrics: frame.fabrics.map(({ name, host }) => ({ name, host })) };
  return frame.type === 'attach' && isShm(frame.fabric)
    ? { ...frame, address: withVersion(frame.address, 9) }
    : frame;
};
/**
 * Acts as a server that states its version in its address. (The address of tcp begins with a different
 * number.)
 */
const answersSo: Change = of('attached', ({ address }: Blob) =>
  new DataView(address.buffer, address.byteOffset).getUint32(0, true) === 0x6d687372
    ? { address: withVersion(address, 9) }
    : {},
);
/**
 * Over a unix socket both sides prove that nothing was changed on the way, unless one of them does not
 * support that.
 */
const unbound =
  (change: Change): Change =>
  (frame) => {
    const changed = change(frame) as Frame;
    return 'features' in changed ? { ...changed, features: changed.features & ~feature.bound } : changed;
  };

const versions =
  /version 9 of (it|shared memory).* version 3; use the same rdma-rpc release on both sides, or the fabric tcp at a host:port/;

describe('versions of shared memory', () => {
  test.each<[string, Change, string[]]>([
    ['the client says so', says, clientLog],
    ['the address of the client tells', tells, serverLog],
    ['the address of the server tells', answersSo, clientLog],
  ])('%s: with auto they meet on tcp', async (_, change, log) => {
    const from = await through(change);
    await answers(from);
    expect(from.fabric).toBe('tcp');
    expect(log.join('\n')).toMatch(versions);
  });

  test.each<[string, Change]>([
    ['the client says so', says],
    ['the address of the server tells', answersSo],
  ])('%s: without another fabric the error has both versions and what to do', async (_, change) => {
    const error = await refusal(await through(change, { fabric: 'shm' }));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(error.message).toMatch(versions);
  });

  test.each<[string, Change]>([
    ['the client says so', says],
    ['the address of the server tells', answersSo],
  ])('%s: so does that of shm-fd, where there is no tcp', async (_, change) => {
    const at = `unix:${socketPath()}`;
    const error = await refusal(await through(unbound(change), { fabric: 'shm-fd' }, at));
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(error.message).toMatch(versions);
  });

  test("when a client of shm-fd has another version in its address, the server's log has both versions", async () => {
    const from = await through(unbound(tells), { fabric: 'shm-fd' }, `unix:${socketPath()}`);
    expect(await refusal(from)).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect(serverLog.join('\n')).toMatch(versions);
  });
});
