/**
 * Tests a channel whose own certificates cannot be used or read. The calls of the channel fail at once with
 * the option and the file, and calls that wait for a connection continue when the files are fixed.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ChannelOptions, type ChannelTls, Status, tlsFiles } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { caught, until } from '../outcomes.ts';
import { Authority, pems } from './certificates.ts';
import { ends, reach, serve } from './ends.ts';

const authority = new Authority();
const { ca } = authority;
const own = authority.issue({ addresses: ['127.0.0.1'] });
const web = authority.issue({ uris: ['spiffe://example.org/web'] });

const path = (name: string): string => join(ends.folder, name);
const write = (texts: Record<string, string>): void => {
  for (const [name, text] of Object.entries(texts)) writeFileSync(path(name), text);
};
const filesOf = () => tlsFiles({ cert: path('cert'), key: path('key'), ca: path('ca') });

/** Opens a channel to a server that asks for certificates, and returns the server's log. */
async function withTls(tls: ChannelOptions['tls']) {
  const { address } = await serve({ tls: { ...pems(own), ca } }, '127.0.0.1:0');
  const lines: string[] = [];
  return { ...reach(address, { tls: tls!, log: (line) => lines.push(line) }), lines };
}

const spoilt: [string, () => void, RegExp][] = [
  ['a file that is not there', () => rmSync(path('key')), /: key \S+\/key: ENOENT: no such file/],
  [
    'one that cannot be read',
    () => {
      rmSync(path('ca'));
      mkdirSync(path('ca'));
    },
    /: ca \S+\/ca: EISDIR: /,
  ],
  ['one that is no PEM', () => write({ cert: 'x' }), /: cert \S+\/cert: no PEM text/],
  [
    'the key of another',
    () => write({ key: own.key }),
    /: key \S+\/key: the key does not belong to the cert/,
  ],
];

test.each(spoilt)('calls fail at once, and the log says so once: %s', async (_, spoil, why) => {
  write({ ...pems(web), ca });
  spoil();
  const { channel, client, lines } = await withTls(filesOf());
  for (const attempt of [client.echo({}), channel.ready(), client.echo({})]) {
    const error = await caught(attempt);
    expect([error.code, error.processed]).toEqual([Status.FAILED_PRECONDITION, 'no']);
    expect(error.rawMessage).toMatch(why);
    expect(error.rawMessage).toMatch(/cannot connect to \S+: createChannel: tls: /);
  }
  expect(lines).toEqual([expect.stringMatching(why)]);
  expect(lines[0]).toMatch(/^createChannel: tls: .*; no connection is made until this is fixed$/);
});

test.each(spoilt)(
  'a call that waits for a connection succeeds when they are corrected: %s',
  async (_, spoil) => {
    write({ ...pems(web), ca });
    spoil();
    const { client, lines } = await withTls(filesOf());
    const answer = client.echo({ number: 7 }, { waitForReady: true, timeoutMs: 20_000 });
    await until(() => lines.length > 0);
    rmSync(path('ca'), { recursive: true });
    write({ ...pems(web), ca });
    expect((await answer).number).toBe(7);
    expect(lines.filter((line) => line.includes('fixed'))).toHaveLength(1);
  },
);

test('options that a function returns are treated alike, but a function that fails may be waiting for something', async () => {
  const bad: ChannelTls = { ca: 'x' };
  const returned = await caught((await withTls(() => bad)).client.echo({}));
  expect([returned.code, returned.rawMessage]).toEqual([
    Status.FAILED_PRECONDITION,
    expect.stringMatching(/createChannel: tls: ca: no PEM text/),
  ]);
  const unknown = await caught((await withTls(() => ({ certt: 'x' }) as ChannelTls)).client.echo({}));
  expect([unknown.code, unknown.rawMessage]).toEqual([
    Status.FAILED_PRECONDITION,
    expect.stringMatching(/createChannel: tls: there is no option certt; did you mean cert\?/),
  ]);
  const away = () => Promise.reject(new Error('the agent is away'));
  const failed = await caught((await withTls(away)).client.echo({}));
  expect([failed.code, failed.rawMessage]).toEqual([
    Status.UNAVAILABLE,
    expect.stringMatching(/createChannel: tls: the agent is away$/),
  ]);
});
