/** Tests `rdma-rpc bench --grpc` with a grpc-js server with TLS that requires a client certificate. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createListener, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { toGrpcJsHandlers } from 'rdma-rpc/grpc/server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../../house/tree.ts';
import { EchoDefinition } from '../../runtime/gen/echo.rdma.ts';
import { Authority } from '../../security/certificates.ts';
import { run } from '../command.ts';

const authority = new Authority();
const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-grpc-tls-'));
const file = (name: string): string => join(folder, name);
const server = new Server();
let address: string;

beforeAll(async () => {
  const own = authority.issue({ names: ['greeter.example.org'], uris: ['spiffe://example.org/greeter'] });
  const web = authority.issue({ uris: ['spiffe://example.org/web'] });
  const texts = { ca: authority.ca, cert: web.cert, key: web.key, another: new Authority('another').ca };
  for (const [name, text] of Object.entries(texts)) writeFileSync(file(name), text);
  server.addService(
    EchoDefinition.methods as never,
    toGrpcJsHandlers(EchoDefinition, { echo: (r) => r, behave: () => ({}) }) as never,
  );
  const pair = { private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.cert) };
  const credentials = ServerCredentials.createSsl(Buffer.from(authority.ca), [pair], true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  address = `127.0.0.1:${port}`;
});
afterAll(() => {
  server.forceShutdown();
  rmSync(folder, { recursive: true });
});

const proto = join(root, 'test/runtime/protos/echo.proto');
const bench = (...flags: string[]) =>
  run('bench', address, 'test.echo.Echo/Echo', '--grpc', '--proto', proto, '-n', '10', ...flags);
const asWeb = () => ['--ca', file('ca'), '--cert', file('cert'), '--key', file('key')];

test.each<[string, string[]]>([
  ['the name in its certificate', ['--servername', 'greeter.example.org']],
  ['its identity', ['--identity', 'spiffe://example.org/greeter']],
])('a server is verified by %s', async (_, flags) => {
  const { code, errors, out } = await bench(...asWeb(), ...flags, '--json');
  expect({ code, errors }).toEqual({ code: 0, errors: '' });
  expect(JSON.parse(out)).toMatchObject({ target: { protocol: 'grpc' }, calls: { ok: 10 } });
});

const none = 'no gRPC server with TLS answers at';
test.each<[string, () => string[], RegExp]>([
  [
    'another name than that of the certificate',
    () => [...asWeb(), '--servername', 'x.example.org'],
    /altnames/,
  ],
  [
    'another identity than that of the certificate',
    () => [...asWeb(), '--identity', 'spiffe://example.org/x'],
    /which the option identity does not list/,
  ],
  [
    'an authority that has not signed the certificate',
    () => ['--ca', file('another'), '--servername', 'greeter.example.org'],
    /certificate/,
  ],
])('%s is refused with one sentence that has the reason', async (_, flags, reason) => {
  const { code, out, errors } = await bench(...flags(), '--timeout', '1500');
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(errors).toMatch(reason);
  expect(errors).toContain(none);
  expect(errors.trim().split('\n')).toHaveLength(1);
});

test('the server refuses a client without a certificate, and one without TLS', async () => {
  const bare = await bench('--ca', file('ca'), '--servername', 'greeter.example.org', '--timeout', '1500');
  expect(bare.code).toBe(1);
  const plain = await bench('--timeout', '1500');
  expect(plain).toMatchObject({ code: 1, errors: expect.stringContaining('no gRPC server without TLS') });
});

test('a session secret is not a gRPC credential', async () => {
  expect(await bench('--psk-file', file('key'))).toMatchObject({
    code: 2,
    errors: expect.stringContaining('--psk-file and --require have no meaning with --grpc'),
  });
});

test('a server that accepts and stays silent causes a time-out, and the command ends', async () => {
  const open: Socket[] = [];
  const silent = createListener((socket) => void open.push(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const asked = ['bench', '--grpc', `127.0.0.1:${port}`, 'test.echo.Echo/Echo', '--ca', file('ca')];
  const { code, errors } = await run(...asked, '--proto', proto, '-n', '1', '--timeout', '500');
  expect({ code, errors }).toEqual({
    code: 1,
    errors: expect.stringMatching(/no gRPC server with TLS answers/),
  });
  for (const socket of open) socket.destroy();
  silent.close();
});
