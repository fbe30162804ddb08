/**
 * Tests trust domains that an agent reports as federated with its own. An authority of one domain cannot
 * issue identities of another.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { Status } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { TrustDomains, trustDomainOf } from '../../runtime/identity/spiffe/trust-domains.ts';
import { caught, until } from '../outcomes.ts';
import { Authority, type Issued, pems } from './certificates.ts';
import { reach, serve } from './ends.ts';
import { agentWith, der, svidOf, workloadOf } from './spiffe-agent.ts';

const own = new Authority('spire of a');
const other = new Authority('spire of b');
const api = 'spiffe://a.example/api';
const web = 'spiffe://b.example/web';
const apiSvid = svidOf(api, own.issue({ uris: [api] }), own.ca);
const webSvid = svidOf(web, other.issue({ uris: [web] }), other.ca);
const bundlesOf = (bundles: Record<string, string>) =>
  Object.fromEntries(Object.entries(bundles).map(([domain, ca]) => [`spiffe://${domain}`, der(ca)]));
const withOther = { svids: [apiSvid], federatedBundles: bundlesOf({ 'b.example': other.ca }) };

/** Starts a server of a.example that also trusts b.example. */
async function federated() {
  const { agent, endpoint } = await agentWith(apiSvid);
  agent.tell(withOther);
  const { workload, lines: said } = workloadOf({ endpoint });
  return { agent, said, ...(await serve({ tls: workload.server() }, '127.0.0.1:0')) };
}
async function clientOf(svid: typeof apiSvid, bundles = {}) {
  const { agent, endpoint } = await agentWith(svid);
  agent.tell({ svids: [svid], federatedBundles: bundlesOf(bundles) });
  return { agent, ...workloadOf({ endpoint }) };
}
const certOf = ({ cert, key }: Issued, ...chain: readonly string[]) => ({
  tls: { ca: own.ca, cert: [cert, ...chain].join(''), key, identity: api },
  backoffMs: 600_000,
  backoffMaxMs: 600_000,
});

test('both sides identify each other, each by the authorities of its own domain', async () => {
  const { seen, address } = await federated();
  const { workload } = await clientOf(webSvid, { 'a.example': own.ca });
  const { channel, client } = reach(address, { tls: workload.channel({ identity: api }) });
  await client.echo({});
  expect([seen[0]?.identity, channel.session?.identity]).toEqual([web, api]);
  const near = await clientOf(apiSvid);
  await reach(address, { tls: near.workload.channel({ identity: api }) }).client.echo({});
  expect(seen[1]?.identity).toBe(api);
});

/** Returns whether a server of this Node sees the certificates that a client sends behind its own. */
async function showsPaths(): Promise<boolean> {
  const between = new Authority('between', other);
  const leaf = between.issue({ uris: [web] });
  const server = createServer({ ...pems(other.issue({})), ca: other.ca, requestCert: true }).listen(0);
  const shown = new Promise<boolean>((resolve) => {
    server.on('secureConnection', (socket) => {
      resolve(socket.getPeerX509Certificate()?.issuerCertificate !== undefined);
      socket.destroy();
    });
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cert = `${leaf.cert}${between.ca}`;
  const client = connect({ port, rejectUnauthorized: false, key: leaf.key, cert }).on('error', () => {});
  const result = await shown;
  client.destroy();
  server.close();
  return result;
}

test('intermediate authorities are accepted when they are sent', async ({ skip }) => {
  if (!(await showsPaths())) skip(`Node ${process.versions.node} shows a server no path of certificates`);
  const { seen, address } = await federated();
  const between = new Authority('between', other);
  await reach(address, certOf(between.issue({ uris: [web] }), between.ca)).client.echo({});
  expect(seen[0]?.identity).toBe(web);
});

describe('a client is refused whose certificate', () => {
  const between = new Authority('between', other);
  const name = 'spiffe://a.example/admin';
  const notOf =
    /the certificate of spiffe:\/\/a\.example\/admin is not signed by an authority of its trust domain/;
  // An authority of the server's own domain that the other domain has also certified.
  const crossed = new Authority('crossed', own);
  const leaf = own.issue({ uris: [api] });
  test.each<[string, ReturnType<typeof certOf>, RegExp]>([
    ['names the own domain and is of the other', certOf(other.issue({ uris: [name] })), notOf],
    ['the same, by one between', certOf(between.issue({ uris: [name] }), between.ca), notOf],
    [
      'the same, with another path beside it',
      certOf(crossed.issue({ uris: [name] }), other.certify(crossed), crossed.ca),
      notOf,
    ],
    [
      'names the other domain and is of the own',
      certOf(own.issue({ uris: [web] })),
      /of spiffe:\/\/b\.example\/web is not signed by/,
    ],
    [
      'names a domain that nobody knows',
      certOf(own.issue({ uris: ['spiffe://c.example/x'] })),
      /no authorities of the trust domain c\.example/,
    ],
    ['has no SPIFFE id', certOf(own.issue({ names: ['web.example'] })), /the certificate has no SPIFFE id/],
    [
      'is that of no authority',
      certOf({ ...between.issue({ uris: [name] }) }, leaf.cert),
      /UNABLE_TO|not signed by/,
    ],
  ])('%s', async (_, options, says) => {
    const { server, lines, address } = await federated();
    const error = await caught(reach(address, options).client.echo({}));
    expect([error.code, error.processed]).toEqual([Status.UNAUTHENTICATED, 'no']);
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(says);
    expect(server.sessionCount).toBe(0);
  });
});

test('an intermediate authority whose key another domain has as its own decides nothing', () => {
  const crossed = new Authority('crossed', own);
  const domains = (root: string) =>
    new TrustDomains(
      new Map([
        ['a.example', [own.ca]],
        ['b.example', [root]],
      ]),
    );
  const { certificate } = own.issue({ uris: [api] });
  expect(domains(crossed.ca).fault(certificate)).toBeUndefined();
  const sent = Object.create(crossed.issue({ uris: [api] }).certificate, {
    issuerCertificate: { value: new Authority('x').issue({}).certificate },
  });
  expect(domains(other.ca).fault(sent)?.message).toMatch(/is not signed by/);
});

describe('a server of another domain', () => {
  test('is identified by the authorities of the expected domain, and by no others', async () => {
    // The certificate names the client's domain, for which its authority must not issue certificates.
    const liar = svidOf(api, other.issue({ uris: [api] }), other.ca);
    const { workload } = await clientOf(liar);
    const { address } = await serve({ tls: workload.server() }, '127.0.0.1:0');
    const near = await clientOf(apiSvid, { 'b.example': other.ca });
    const { client } = reach(address, { tls: near.workload.channel({ identity: api }), backoffMs: 600_000 });
    expect((await caught(client.echo({}))).message).toMatch(/the server's certificate is not accepted/);
  });

  test('is refused while the agent has sent no authority for it', async () => {
    const { workload } = await clientOf(webSvid, { 'a.example': own.ca });
    const { address } = await serve({ tls: workload.server() }, '127.0.0.1:0');
    const near = await clientOf(apiSvid);
    const { client } = reach(address, { tls: near.workload.channel({ identity: web }), backoffMs: 1 });
    expect((await caught(client.echo({}))).message).toMatch(
      /the agent has given no authorities of the trust domain b\.example/,
    );
    near.agent.tell(withOther);
    await client.echo({}, { waitForReady: true });
  });

  test('cannot be requested for two domains at once', async () => {
    const { workload } = await clientOf(apiSvid);
    for (const identity of [[api, web], ['dns:web'], []])
      expect(() => workload.channel({ identity })).toThrow(/takes SPIFFE ids, all of one trust domain/);
  });
});

describe('bundles change at run time', () => {
  test('first new authorities of the other domain, then none, and existing connections stay', async () => {
    const { agent, server, address } = await federated();
    const next = new Authority('spire of b, next');
    const before = reach(address, certOf(other.issue({ uris: [web] })));
    await before.client.echo({});
    const answers = async (authority: Authority): Promise<boolean> => {
      const { client } = reach(address, certOf(authority.issue({ uris: [web] })));
      return client.echo({}).then(
        () => true,
        () => false,
      );
    };
    const bundles = async (given: Record<string, string>, ...wanted: readonly boolean[]): Promise<void> => {
      agent.tell({ svids: [apiSvid], federatedBundles: bundlesOf(given) });
      let seen: boolean[] = [];
      const look = async () => {
        seen = [await answers(other), await answers(next)];
        return String(seen) === String(wanted);
      };
      while (!(await look()));
    };
    await bundles({ 'b.example': other.ca }, true, false);
    await bundles({ 'b.example': next.ca }, false, true);
    await bundles({}, false, false);
    await before.client.echo({});
    expect(server.sessions.map(({ identity }) => identity)).toContain(web);
  });

  test.each<[string, Record<string, Buffer>, RegExp]>([
    [
      'no certificates',
      { 'spiffe://b.example': Buffer.alloc(100, 0x30) },
      /the bundle of "spiffe:\/\/b\.example" is left out: /,
    ],
    ['none', { 'spiffe://b.example': Buffer.alloc(0) }, /it contains no authority/],
    ['of what is no domain', { 'b example': der(other.ca) }, /its name is not the id of a trust domain/],
  ])('unusable bundles are skipped, and the others are used: %s', async (_, bundles, says) => {
    const { agent, said, seen, address } = await federated();
    const later = 'spiffe://a.example/later';
    const good = bundlesOf({ 'c.example': new Authority('c').ca });
    agent.tell({
      svids: [svidOf(later, own.issue({ uris: [later] }), own.ca)],
      federatedBundles: { ...good, ...bundles },
    });
    await until(() => said.length > 0);
    expect(said[0]).toMatch(says);
    const { workload } = await clientOf(apiSvid);
    await reach(address, { tls: workload.channel({ identity: later }) }).client.echo({});
    expect(seen[0]?.identity).toBe(api);
  });

  test("an agent's bundle of the own domain among the others is ignored", async () => {
    const { agent, address, lines } = await federated();
    agent.tell({ svids: [apiSvid], federatedBundles: bundlesOf({ 'a.example': other.ca }) });
    const { client } = reach(address, certOf(other.issue({ uris: [api] })));
    expect((await caught(client.echo({}))).code).toBe(Status.UNAUTHENTICATED);
    await until(() => lines.length > 0);
  });
});

test.each([
  ['spiffe://a.example/x/y', 'a.example'],
  ['spiffe://a.example', 'a.example'],
  ['spiffe://A.example/x', undefined],
  ['spiffe://a.example:80/x', undefined],
  ['spiffe://user@a.example/x', undefined],
  ['spiffe:///x', undefined],
  ['https://a.example/x', undefined],
])('the trust domain of %s is %s', (id, domain) => {
  expect(trustDomainOf(id)).toBe(domain);
});
