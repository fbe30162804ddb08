/**
 * Tests that texts and certificates of unauthenticated peers appear in one line of the log. Such texts cannot
 * forge further lines about sessions or refusals that never happened.
 */
import { connect } from 'node:net';
import { RpcError, type ServerOptions, Status } from 'rdma-rpc';
import { describe, expect, test, vi } from 'vitest';
import { encodeFrame } from '../../runtime/control/link.ts';
import { fabricLog, oneLine } from '../../runtime/core/log.ts';
import { hello } from '../control/by-hand.ts';
import { caught, until } from '../outcomes.ts';
import { Authority, pems } from './certificates.ts';
import { ends, reach, serve, unixAddress } from './ends.ts';

const forged = 'gone\r\n\u2028\u001b[2Jhandshake with 10.0.0.1 (root) failed';
/** Matches characters that begin a line, reverse the text direction, or are commands to a terminal. */
const odd = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]/u;
const once = { backoffMs: 600_000, backoffMaxMs: 600_000 };

async function refusing(options: ServerOptions, address = unixAddress()) {
  const reasons: string[] = [];
  const serving = await serve(
    {
      onSession: (session) => {
        if (!session.accepted) reasons.push(session.reason);
      },
      ...options,
    },
    address,
  );
  return { ...serving, reasons };
}

async function expectOneLine({ lines, reasons }: { lines: string[]; reasons: string[] }): Promise<void> {
  await until(() => lines.length > 0 && reasons.length > 0);
  for (const text of [...lines, ...reasons]) expect(text).not.toMatch(odd);
  expect([lines.length, reasons.length]).toEqual([1, 1]);
}

test.each([
  ['says bye', () => encodeFrame({ type: 'bye', reason: forged })],
  ['begins with a fabric', () => encodeFrame({ type: 'unreachable', reason: forged })],
  [
    'sends hello, then bye with these words',
    () => Buffer.concat([encodeFrame(hello({})), encodeFrame({ type: 'bye', reason: forged })]),
  ],
])('an unauthenticated peer that %s', async (_, words) => {
  const served = await refusing({}, '127.0.0.1:0');
  const socket = connect(Number(served.address.split(':')[1]), '127.0.0.1').on('error', () => undefined);
  socket.write(words());
  await expectOneLine(served);
  socket.destroy();
});

test.each<[string, ServerOptions['authenticate'], RegExp]>([
  [
    'an error',
    () => {
      throw new Error(`no token ${forged}`);
    },
    /no token gone/,
  ],
  [
    'an error of its own',
    () => {
      throw new RpcError(Status.PERMISSION_DENIED, `no token ${forged}`);
    },
    /no token gone/,
  ],
  ['a name in several lines', () => forged, /authenticate has returned no identity/],
  ['a name that is empty', () => '', /authenticate has returned no identity/],
  ['a name without an end', () => 'x'.repeat(1025), /authenticate has returned no identity/],
])('`authenticate` that gives %s', async (_, authenticate, says) => {
  const served = await refusing({ authenticate: authenticate! });
  const error = await caught(reach(served.address, once).client.echo({}));
  expect(error.processed).toBe('no');
  await expectOneLine(served);
  expect(served.lines[0]).toMatch(says);
});

test('a certificate name with several lines is ignored', async () => {
  const authority = new Authority();
  const { ca } = authority;
  const server = { tls: { ca, ...pems(authority.issue({ addresses: ['127.0.0.1'] })) } };
  for (const wanted of [{ names: [forged] }, { uris: [`urn:${forged}`] }]) {
    const served = await refusing({ ...server, authorize: {} }, '127.0.0.1:0');
    const tls = { ca, ...pems(authority.issue(wanted)) };
    const error = await caught(reach(served.address, { tls }).client.echo({}));
    expect(error.code).toBe(Status.PERMISSION_DENIED);
    // The line about the session's fabric may come behind this one.
    expect(served.lines).toContainEqual(expect.stringMatching(/to 127\.0\.0\.1:\d+, without an identity$/));
    // A session counts once it is ready, and the answer may come first.
    await until(() => ends.servers.at(-1)!.sessions.length > 0);
    expect(ends.servers.at(-1)!.sessions).toMatchObject([{ identity: undefined }]);
  }
});

describe('a line', () => {
  test("of a client has the server's reasons for fabrics", () => {
    const lines: string[] = [];
    fabricLog((line) => lines.push(line))(() => `tcp: ${forged}`, false);
    expect(lines).toEqual([expect.not.stringMatching(odd)]);
  });

  test('that a function `log` cannot write ends no session, on either side', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      const log = () => {
        throw new Error('no disk');
      };
      const { address } = await serve({ log }, unixAddress());
      await reach(address, { log }).client.echo({});
      await until(() => warned.mock.calls.length >= 2);
      for (const [text] of warned.mock.calls) expect(text).toMatch(/^the function `log` has failed/);
    } finally {
      vi.restoreAllMocks();
    }
  });

  test('keeps readable text', () => {
    expect(oneLine('Ünïcode 漢字, "quotes" & more')).toBe('Ünïcode 漢字, "quotes" & more');
    expect(oneLine(' a\n\tb\u202ec ')).toBe('a b c');
  });
});
