/**
 * Makes an authority, certificates that it has signed, and a server at a port, for the tests of TLS in this
 * folder.
 */
import type { ServerOptions, ServerTls } from 'rdma-rpc';
import { Authority, pems } from './certificates.ts';
import { serve as served } from './ends.ts';

export const authority: Authority = new Authority();
export const { ca } = authority;
export const spiffe = 'spiffe://example.org/web';
export const serverCert = authority.issue({
  names: ['localhost'],
  addresses: ['127.0.0.1'],
  subject: 'server',
});
export const web = authority.issue({ uris: [spiffe] });
export const mutual: ServerTls = { ...pems(serverCert), ca };

export async function serve(options: ServerOptions = {}) {
  const serving = await served({ fabric: ['shm', 'tcp'], ...options }, '127.0.0.1:0');
  return { ...serving, port: Number(serving.address.split(':')[1]) };
}
