/**
 * Tests identities of a scripted SPIFFE agent, queried by gRPC over a unix socket like a real one.
 */
import { join } from 'node:path';
import { Status } from 'rdma-rpc';
import { createWorkload, type WorkloadOptions } from 'rdma-rpc/spiffe';
import { describe, expect, test, vi } from 'vitest';
import type { X509SVIDResponseInit } from '../../runtime/identity/spiffe/gen/workload.rdma.ts';
import { caught, until } from '../outcomes.ts';
import { Authority } from './certificates.ts';
import { ends, reach, serve } from './ends.ts';
import { agentWith, der, svidOf, workloadOf } from './spiffe-agent.ts';

const authority = new Authority('spire');
const otherDomain = new Authority('another domain');
const id = (name: string): string => `spiffe://example.org/${name}`;

const svid = (name: string, issued = authority.issue({ uris: [id(name)] }), bundle = authority.ca) =>
  svidOf(id(name), issued, bundle);

describe('with an agent on each side', () => {
  test('both sides identify each other by their SPIFFE ids, and the agent is asked as the specification requires', async () => {
    const [api, web] = [await agentWith(svid('api')), await agentWith(svid('web'))];
    const { workload } = workloadOf({ endpoint: api.endpoint });
    const { seen, address } = await serve({ tls: workload.server() }, '127.0.0.1:0');
    const mine = workloadOf({ endpoint: web.endpoint }).workload;
    const { channel, client } = reach(address, { tls: mine.channel({ identity: id('api') }) });
    await client.echo({});
    expect([seen[0]?.identity, channel.session?.identity, mine.identity]).toEqual([
      id('web'),
      id('api'),
      id('web'),
    ]);
    expect(api.agent.asked[0]?.get('workload.spiffe.io')).toEqual(['true']);
  });

  test('a server with another id is refused, and so is a client of another trust domain', async () => {
    const api = await agentWith(svid('api'));
    const { workload } = workloadOf({ endpoint: api.endpoint });
    const { address } = await serve({ tls: workload.server() }, '127.0.0.1:0');
    const other = reach(address, { tls: workload.channel({ identity: id('db') }) });
    expect((await caught(other.client.echo({}))).message).toMatch(
      /the server is spiffe:\/\/example.org\/api, which the option identity does not list/,
    );
    const { cert, key } = otherDomain.issue({ uris: [id('web')] });
    const late = await caught(
      reach(address, { tls: { ca: authority.ca, cert, key, identity: id('api') } }).client.echo({}),
    );
    expect(late.code).toBe(Status.UNAUTHENTICATED);
  });

  test('new certificates are used for the next connection, and no call fails', async () => {
    const { agent, endpoint } = await agentWith(svid('web'));
    const { workload } = workloadOf({ endpoint });
    const { server, seen, address } = await serve({ tls: workload.server() }, '127.0.0.1:0');
    const dial = () => reach(address, { tls: workload.channel({ identity: [id('web'), id('web2')] }) });
    const first = dial();
    await first.client.echo({});
    // The authority and the name have changed.
    const next = new Authority('spire 2');
    agent.tell({ svids: [svid('web2', next.issue({ uris: [id('web2')] }), next.ca)] });
    await until(() => workload.identity === id('web2'));
    const second = dial();
    await second.client.echo({});
    await first.client.echo({});
    expect(seen.map(({ identity }) => identity)).toEqual([id('web'), id('web2'), id('web')]);
    expect(server.sessionCount).toBe(2);
    // The earlier authority is no longer trusted.
    const { cert, key } = authority.issue({ uris: [id('web')] });
    const revoked = reach(address, { tls: { ca: next.ca, cert, key, identity: id('web2') } });
    expect((await caught(revoked.client.echo({}))).code).toBe(Status.UNAUTHENTICATED);
  });

  test('one of several identities is chosen by its id or hint, and otherwise the first one is used', async () => {
    const { endpoint } = await agentWith(svid('a'), { ...svid('b'), hint: 'internal' });
    for (const [wanted, got] of [
      ['', 'a'],
      [id('b'), 'b'],
      ['internal', 'b'],
    ] as const) {
      const { workload } = workloadOf({ endpoint, ...(wanted !== '' && { id: wanted }) });
      await workload.ready();
      expect(workload.identity).toBe(id(got));
    }
  });
});

describe('an agent that', () => {
  const expired = svid('web', authority.issue({ uris: [id('web')], days: -1 }));
  const web = svid('web');
  test.each<[string, X509SVIDResponseInit, RegExp]>([
    ['has no identity', {}, /is not among those of the agent: none/],
    [
      'gives the key of another',
      { svids: [{ ...web, x509SvidKey: der(authority.issue({}).key) }] },
      /mismatch/i,
    ],
    [
      'gives a certificate of another',
      { svids: [{ ...web, spiffeId: id('root') }] },
      /the certificate is not that of spiffe:\/\/example.org\/root/,
    ],
    [
      'cuts off',
      { svids: [{ ...web, x509Svid: Buffer.from(web.x509Svid!).subarray(0, 100) }] },
      /truncated certificates/,
    ],
    [
      'gives no authorities',
      { svids: [{ ...web, bundle: new Uint8Array() }] },
      /the agent.s answer has no certificate, or no authority/,
    ],
    ['gives nonsense', { svids: [{ ...web, bundle: new Uint8Array(1000).fill(0x30) }] }, /./],
  ])('%s changes nothing', async (_, response, reason) => {
    const { agent, endpoint } = await agentWith(web);
    const { workload, lines } = workloadOf({ endpoint });
    await workload.ready();
    agent.tell(response);
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(/^spiffe: the answer of the agent cannot be used: /);
    expect(lines[0]).toMatch(reason);
    expect(lines.join()).not.toContain(Buffer.from(web.x509SvidKey!).toString('base64').slice(0, 40));
    await workload.ready();
    expect(workload.identity).toBe(id('web'));
  });

  test('sends an expired certificate: connections fail with that reason', async () => {
    const { endpoint } = await agentWith(expired);
    const { workload } = workloadOf({ endpoint });
    await expect(workload.ready()).rejects.toThrow(
      /the certificate of spiffe:\/\/example.org\/web has expired: the agent has sent no newer/,
    );
  });

  test('stops: its last identity stays in use', async () => {
    const { agent, endpoint } = await agentWith(web);
    const { workload, lines } = workloadOf({ endpoint });
    const { address } = await serve({ tls: workload.server() }, '127.0.0.1:0');
    await workload.ready();
    agent.stop();
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(/the agent gives no identity: .+; asked again in 1000 ms/);
    await reach(address, { tls: workload.channel({ identity: id('web') }) }).client.echo({});
  });

  test('ends its stream without an error is logged, and is asked again', async () => {
    const { agent, endpoint } = await agentWith(web);
    const { workload, lines } = workloadOf({ endpoint });
    await workload.ready();
    agent.end();
    await until(() => lines.length > 0);
    expect(lines).toEqual([
      'spiffe: the agent gives no identity: it has ended the stream; asked again in 1000 ms',
    ]);
  });

  test('sends unusable data to a workload whose log fails: the next update is still used', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    try {
      const { agent, endpoint } = await agentWith(web);
      const { workload } = workloadOf({
        endpoint,
        log: () => {
          throw new Error('no disk');
        },
      });
      await workload.ready();
      agent.tell({});
      agent.tell({ svids: [svid('web2')] });
      await until(() => workload.identity === id('web2'));
      expect(warned.mock.calls.map(([text]) => String(text))).toContain('the function `log` has failed');
    } finally {
      warned.mockRestore();
    }
  });

  test('never answers: a channel waits no longer than its limit, and close() ends all waiting calls', async () => {
    const { workload } = workloadOf({ endpoint: `unix:${join(ends.folder, 'nobody')}` });
    const { client } = reach('127.0.0.1:1', {
      tls: workload.channel({ identity: id('api') }),
      connectTimeoutMs: 100,
    });
    expect((await caught(client.echo({}))).message).toMatch(/no answer within 100 ms|ECONNREFUSED/);
    const ready = workload.ready();
    const closed = workload.close();
    await expect(ready).rejects.toThrow(/the workload was closed/);
    await closed;
  });
});

test.each([
  [{ endpoint: 'http://a' }, /createWorkload: endpoint: http:\/\/a is none; give unix:\/path or tcp/],
  [{}, /no endpoint is given, and SPIFFE_ENDPOINT_SOCKET is not set/],
  [{ socket: '/a' }, /there is no option socket/],
])('options that cannot be used: %j', (options, reason) => {
  expect(() => createWorkload(options as WorkloadOptions)).toThrow(reason);
});
