/**
 * Connections of `node:tls` alone, with the same certificates and settings as ours. They show the cost of a
 * handshake without this package. This peer only opens connections, and makes no calls.
 */
import { constants } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createSecureContext, createServer, connect as dial, type SecureContext } from 'node:tls';
import type { BenchClient, BenchServer, EndOptions, Peer } from './peer.ts';

function filesOf({ tls }: EndOptions) {
  if (tls === undefined) throw new Error('tls bare: there are no certificates');
  const file = (name: string): Buffer => readFileSync(join(tls, `${name}.pem`));
  return { cert: file('cert'), key: file('key'), ca: file('ca'), minVersion: 'TLSv1.3' } as const;
}

async function serve(options: EndOptions): Promise<BenchServer> {
  const server = createServer({
    ...filesOf(options),
    requestCert: true,
    rejectUnauthorized: true,
    secureOptions: constants.SSL_OP_NO_TICKET,
  });
  // The first byte from the server shows that both sides have agreed.
  server.on('secureConnection', (socket) => socket.on('error', () => undefined).end('x'));
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { port, close: async () => void server.close() };
}

let context: SecureContext | undefined;

async function connect(options: EndOptions): Promise<BenchClient> {
  context ??= createSecureContext(filesOf(options));
  const { port = 0 } = options;
  const socket = dial({ host: '127.0.0.1', port, secureContext: context, servername: 'localhost' });
  await new Promise<void>((resolve, reject) => socket.once('error', reject).once('data', () => resolve()));
  const nothing = (): never => {
    throw new Error('tls bare: it has connections, and no calls');
  };
  return {
    buffer: nothing,
    echo: nothing,
    put: nothing,
    close: async () => void socket.destroy(),
  };
}

export const bareTls: Peer = { name: 'tls bare', fabric: 'tcp', tls: true, serve, connect };
