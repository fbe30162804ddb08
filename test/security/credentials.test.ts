/** Tests the credentials of a channel, for its session and for its calls. */
import { inspect } from 'node:util';
import { type ChannelOptions, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { KeptCredentials } from '../../runtime/client/credentials.ts';
import { caught, until } from '../outcomes.ts';
import { Authority } from './certificates.ts';
import { reach as reached, serveWho as serve } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });

afterEach(() => void vi.useRealTimers());

const reach = (address: string, options?: ChannelOptions) => reached(address, options).client;

describe('credentials of a session', () => {
  const session = () => ({ metadata: { token: 'secret' } });
  test('are not sent where others can read them, unless that is allowed', async () => {
    const tokens: unknown[] = [];
    const { server, address } = await serve(
      { authenticate: (_, metadata) => void tokens.push(metadata.get('token')) as undefined },
      '127.0.0.1:0',
    );
    const error = await caught(reach(address, { credentials: { session } }).echo({}));
    expect(error.code).toBe(Status.FAILED_PRECONDITION);
    expect(error.message).toMatch(
      /not sent over a connection that others may read: use tls or a unix socket/,
    );
    expect([tokens, server.sessionCount]).toEqual([[], 0]);
    await reach(address, { credentials: { session, unsealed: true } }).echo({});
    expect(tokens).toEqual(['secret']);
    // The name was sent over a connection to which any program could write.
    await until(() => server.sessions.length > 0);
    expect(server.sessions[0]!.security).toBe('none');
  });

  test('are sent over TLS', async () => {
    const { address } = await serve(
      { tls: { cert, key }, authenticate: (_, metadata) => `token:${String(metadata.get('token'))}` },
      '127.0.0.1:0',
    );
    const client = reach(address, { tls: { ca }, credentials: { session } });
    expect((await client.echo({})).text).toBe('token:secret');
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no vault');
      },
      /the credentials function of the channel failed: no vault/,
    ],
    ['gives none', () => undefined as never, /the credentials function of the channel failed/],
    [
      'forgets `metadata`',
      () => ({ token: 'abc' }) as never,
      /metadata is missing; return \{ metadata, expiresAtMs \}/,
    ],
    [
      'gives the token alone',
      () => ({ metadata: 'secret' }) as never,
      /metadata must be an object of names and values, or a list of such pairs/,
    ],
    ['hangs', () => new Promise<never>(() => undefined), /no answer within 100 ms/],
  ])('from a function that %s: its calls fail in time', async (how, bad, told) => {
    const { address } = await serve({});
    const error = await caught(
      reach(address, {
        connectTimeoutMs: how === 'hangs' ? 100 : 60_000,
        credentials: { session: bad },
      }).echo({}),
    );
    expect([error.processed, error.message]).toEqual(['no', expect.stringMatching(told)]);
    expect(inspect(error)).not.toMatch(/secret/);
  });
});

describe('credentials of calls', () => {
  test('are sent with each call, and are kept until shortly before they expire', async () => {
    let asked = 0;
    let expiresAtMs: number | undefined = Date.now() + 3_600_000;
    const call = async () => ({ metadata: { token: `t${++asked}` }, ...(expiresAtMs && { expiresAtMs }) });
    const { address } = await serve({});
    const client = reach(address, { credentials: { call } });
    const tokens = await Promise.all([client.behave({}), client.behave({})]);
    expect(tokens.map(({ text }) => text)).toEqual(['t1', 't1']);
    vi.useFakeTimers({ toFake: ['Date'], now: expiresAtMs - 29_000 });
    expiresAtMs = undefined;
    expect((await client.behave({})).text).toBe('t2');
    expect((await client.behave({}, { metadata: { token: 'mine' } })).text).toBe('mine,t3');
  });

  test('keep a channel off the fabrics that leave the host, unless that is allowed', async () => {
    const call = () => ({ metadata: { token: 'secret' } });
    const { address } = await serve({ tls: { cert, key } }, '127.0.0.1:0');
    const options: ChannelOptions = { tls: { ca }, fabric: 'tcp' };
    const error = await caught(reach(address, { ...options, credentials: { call } }).echo({}));
    expect(error.message).toMatch(/tcp: credentials of calls are not sent over it/);
    const told = reach(address, { ...options, credentials: { call, unsealed: true } });
    expect((await told.behave({})).text).toBe('secret');
    expect((await reach(address, { tls: { ca }, credentials: { call } }).behave({})).text).toBe('secret');
  });

  test('that fail make that call fail', async () => {
    const { address } = await serve({});
    let good = false;
    const call = () => {
      if (!good) throw new Error('no vault');
      return { metadata: {} };
    };
    const client = reach(address, { credentials: { call } });
    expect(await caught(client.echo({}))).toMatchObject({ code: Status.UNAUTHENTICATED, processed: 'no' });
    good = true;
    await client.echo({});
  });

  test('are requested again when the function hangs once, and no call waits for ever', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let asked = 0;
    const kept = new KeptCredentials(() =>
      ++asked === 1 ? new Promise(() => undefined) : { metadata: { token: 'here' } },
    );
    const waiting = [caught(kept.metadata()), caught(kept.metadata())];
    await vi.advanceTimersByTimeAsync(30_000);
    for (const error of await Promise.all(waiting))
      expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    expect((await kept.metadata()).get('token')).toBe('here');
    expect([asked, vi.getTimerCount()]).toEqual([2, 0]);
  });
});
