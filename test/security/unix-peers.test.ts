/**
 * Tests the process at the other end of a unix socket: the facts that the kernel reports, the clients that
 * `allow` admits, and the users who may open the socket's file.
 */
import { execFile } from 'node:child_process';
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import {
  type ChannelOptions,
  createClient,
  createInProcessChannel,
  createServer,
  type PeerInfo,
  type ServerOptions,
  Status,
  stats,
} from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { type Frame, magic, ownFeatures, version } from '../../runtime/control/frames.ts';
import { hostIdentity } from '../../runtime/control/host.ts';
import { decodeFrame, encodeFrame } from '../../runtime/control/link.ts';
import { knownOf } from '../../runtime/control/peer-identity.ts';
import { parseAddress } from '../../runtime/control/socket/address.ts';
import { socketDial } from '../../runtime/control/socket/dial.ts';
import { UnixPath } from '../../runtime/control/socket/unix-path.ts';
import { KnownPeer } from '../../runtime/core/peer.ts';
import { Allowed } from '../../runtime/server/allowed.ts';
import { caught } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { ends, reach as reached, serve as served, unixAddress } from './ends.ts';

const uid = process.geteuid!();
const gid = process.getegid!();
const otherUid = 54_321;

const serve = (options: ServerOptions = {}, address = unixAddress()) => served(options, address);
const reach = (address: string, options?: ChannelOptions) => reached(address, options).client;

describe('a client on a unix socket', () => {
  test('is identified by uid, gid and pid of its process, besides its own claims', async () => {
    const { seen, address } = await serve();
    await reach(address, { identity: 'uid:0, or so I say' }).echo({});
    expect(seen[0]).toMatchObject({
      uid,
      gid,
      pid: process.pid,
      identity: `uid:${uid}`,
      claims: 'uid:0, or so I say',
      address,
      certificate: undefined,
    });
    expect(String(seen[0])).toBe(`${address} (uid:0, or so I say)`);
  });

  test.each<[string, ServerOptions['allow']]>([
    ['its user', { uid }],
    ['its group, among others', { uid: 54_320, gid: [54_320, gid] }],
    ['its identity', { identity: `uid:${uid}` }],
  ])('has a session when the server allows %s', async (_, allow) => {
    const { address } = await serve({ allow: allow! });
    expect(await reach(address).echo({ number: 4 })).toMatchObject({ number: 4 });
  });

  test.each<[string, NonNullable<ServerOptions['allow']>]>([
    ['another user', { uid: otherUid }],
    ['another group', { gid: otherUid }],
    ['nobody', { uid: [] }],
    ['another identity', { identity: 'uid:54321' }],
  ])('is refused when the server allows %s, before a queue pair is made', async (_, allow) => {
    const lines: string[] = [];
    const { server, address } = await serve({ allow, log: (line) => lines.push(line) });
    const { queuePairs } = stats();
    const error = await caught(reach(address, { identity: `uid:${otherUid}` }).echo({}));
    expect(error.code).toBe(Status.PERMISSION_DENIED);
    expect(error.message).toMatch(/this server does not allow this client \(option allow of the server\)/);
    expect(error.message).not.toContain(`${otherUid}`);
    const told = lines.filter((line) => !line.startsWith('listen '));
    expect(told).toEqual([expect.stringContaining(`uid ${uid}, gid ${gid}, pid ${process.pid}`)]);
    expect([server.sessionCount, stats().queuePairs]).toEqual([0, queuePairs]);
  });

  test('of another user is distinguished from this one', async ({ skip }) => {
    skip(uid !== 0, 'only root can be another user');
    const { address } = await serve({ allow: { uid: 0 }, socket: { mode: 0o666 } });
    const answer = await helloAs(otherUid, address);
    expect(answer).toMatchObject({ type: 'refusal', code: Status.PERMISSION_DENIED });
    expect(await reach(address).echo({ number: 1 })).toMatchObject({ number: 1 });
  });
});

/** Returns the server's answer to the hello of a process of this user. */
async function helloAs(user: number, address: string): Promise<Frame | string> {
  const hello = encodeFrame({
    type: 'hello',
    magic,
    version,
    features: ownFeatures,
    limits: { inflightMax: 1, messageMaxBytes: 65_536, slotBytes: 8192 },
    fabrics: [{ name: 'shm', host: hostIdentity() }],
    identity: 'uid:0',
  });
  const script = `
    process.setgroups([]); process.setgid(${user}); process.setuid(${user});
    const socket = require('node:net').connect(${JSON.stringify(address.slice('unix:'.length))});
    socket.write(Buffer.from('${hello.toString('hex')}', 'hex'));
    socket.once('data', (chunk) => { console.log(chunk.toString('hex')); process.exit(0); });`;
  chmodSync(ends.folder, 0o755);
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], { cwd: '/' });
  return decodeFrame(Buffer.from(stdout.trim(), 'hex').subarray(4));
}

describe('a peer that the kernel cannot name', () => {
  test('is unknown: process 0, and the overflow numbers of users and groups', () => {
    expect(knownOf({ pid: 0, uid: 65_534, gid: 65_534 })).toEqual({});
    expect(knownOf({ pid: 0, uid: 7, gid: 65_534 })).toEqual({ uid: 7, identity: 'uid:7' });
  });

  test('matches no rule, even when the number itself is allowed', () => {
    const allowed = new Allowed(
      { uid: 65_534 },
      { uid: [65_534], gid: [65_534], identity: ['uid:65534', 'undefined'] },
    );
    const peer = new KnownPeer('unix:/s', 'uid:65534', knownOf({ pid: 0, uid: 65_534, gid: 65_534 }));
    expect(() => allowed.check(peer)).toThrow(expect.objectContaining({ code: Status.UNAUTHENTICATED }));
  });

  test('matches no rule over TCP, where the peer is unknown', async () => {
    const { server, address } = await serve({ allow: { uid: [uid, 65_534] } }, '127.0.0.1:0');
    const error = await caught(reach(address, { identity: `uid:${uid}` }).echo({}));
    expect(error.code).toBe(Status.UNAUTHENTICATED);
    expect(server.sessionCount).toBe(0);
  });
});

test('an in-process channel is of this process', async () => {
  const seen: PeerInfo[] = [];
  const channel = createInProcessChannel(
    (server) =>
      server.add(EchoDefinition, {
        echo: (request, { peer }) => {
          seen.push(peer);
          return request;
        },
      }),
    { allow: { uid } },
  );
  ends.channels.push(channel);
  await createClient(EchoDefinition, channel).echo({});
  expect(seen[0]).toMatchObject({ uid, gid, pid: process.pid });
});

test('an empty `allow` is an error', () => {
  expect(() => createServer({ allow: {} })).toThrow(/allow: the option is empty; give uid, gid or identity/);
  expect(() => createServer({ allow: new Map() as never })).toThrow(
    'createServer: allow: must be an object with options, but is Map',
  );
  expect(() => createServer({ allow: { uid: -1 } })).toThrow(/allow: uid: -1 is not an integer/);
  expect(() => createServer({ allow: { user: 1 } as object })).toThrow(/there is no option user/);
});

describe('the file of a socket', () => {
  test.each<[unknown, string]>([
    [660, '660 is not'],
    ['660', "'660' is a string, not a number; give"],
  ])('a mode that is not octal (%o) says how it is written', (mode, refused) => {
    expect(() => createServer({ socket: { mode: mode as number } })).toThrow(
      `socket: mode: ${refused} an integer from 0 to 511 (0o777), such as 0o660`,
    );
  });

  test('has the requested mode and group, and no other file is left beside it', async () => {
    const { address } = await serve({ socket: { mode: 0o640, gid } });
    const file = statSync(join(ends.folder, 's'));
    expect([file.mode & 0o777, file.gid, file.isSocket()]).toEqual([0o640, gid, true]);
    expect(readdirSync(ends.folder).sort()).toEqual(['s', 's.lock']);
    await reach(address).echo({});
    await ends.servers[0]!.shutdown({ graceMs: 0 });
    expect(readdirSync(ends.folder)).toEqual([]);
  });

  test('is made with any umask', async () => {
    // Root may enter any folder, so the test checks the folder's permissions.
    let rights = -1;
    const before = process.umask(0o777);
    try {
      const listenAt = async (bound: string): Promise<void> => {
        rights = statSync(dirname(bound)).mode & 0o777;
        writeFileSync(bound, '');
      };
      (await UnixPath.take(join(ends.folder, 's'), listenAt, { mode: 0o600 })).release();
    } finally {
      process.umask(before);
    }
    expect([rights, readdirSync(ends.folder)]).toEqual([0o700, []]);
  });

  test('is not made when it cannot have its owner, and listen() gives the reason', async ({ skip }) => {
    skip(uid === 0, 'root may give files away');
    await expect(serve({ socket: { uid: otherUid } })).rejects.toThrow(
      /EPERM: its mode or owner cannot be set \(option socket/,
    );
    expect(readdirSync(ends.folder)).toEqual([]);
  });

  test('of another user without root cannot be used by others', async ({ skip }) => {
    skip(uid !== 0, 'only root can be another user');
    const { address } = await serve({ socket: { mode: 0o600 } });
    await expect(helloAs(otherUid, address)).rejects.toThrow(/EACCES/);
  });

  test('that may not be used causes an error at the client that says how to allow it', async () => {
    const { address } = await serve({ socket: { mode: 0 } });
    const dial = socketDial(parseAddress(address));
    let dialled: Promise<unknown>;
    // Root may use any socket.
    if (uid === 0) process.seteuid!(otherUid);
    try {
      dialled = dial(new AbortController().signal);
    } finally {
      process.seteuid!(uid);
    }
    await expect(dialled).rejects.toMatchObject({
      code: 'EACCES',
      message: `connect EACCES ${address.slice(5)}: this user may not use the socket; option socket of the server, its mode and gid, lets others`,
    });
  });
});
