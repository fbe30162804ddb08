/**
 * node:tls on top of sockets, for programs that bring their own TLS. The example uses a shared secret instead
 * of certificates. Sessions of rdma-rpc have TLS of their own, which costs less.
 */
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import * as tls from 'node:tls';
import { connect } from 'rdma-rpc/socket';
import { alone, serve, stop } from './serve.ts';

const psk = Buffer.alloc(32, 'example');
const options = { ciphers: 'PSK', maxVersion: 'TLSv1.2' } as const;

export async function run(): Promise<Record<string, unknown>> {
  const { server, address } = await serve((socket) => {
    const secure = new tls.TLSSocket(socket, { ...options, isServer: true, pskCallback: () => psk } as never);
    secure.end('over TLS');
  });
  const client = tls.connect({
    ...options,
    socket: connect(address),
    pskCallback: () => ({ psk, identity: 'example' }),
    checkServerIdentity: () => undefined,
  } as never);
  await once(client, 'secureConnect');
  const cipher = client.getCipher().name;
  const seen = await text(client);
  await stop(server);
  return { seen, isPsk: cipher.includes('PSK') };
}

await alone(import.meta.url, run);
