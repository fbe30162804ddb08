/**
 * Requests to the API server, whose certificate is signed only by the authorities of the cluster, which
 * Node's `fetch` cannot be told to accept. Used for the keys of tokens.
 */
import { request } from 'node:https';
import type { FetchImplementation } from 'jose';

export interface ApiServer {
  /** Certificates of authorities in PEM; a function is called again for each request. */
  readonly ca: string | (() => string);
  /** The token to send. */
  readonly token?: () => string;
}

/** Limit of a response; keys have some KiB. */
const bytesMax = 1 << 20;

/** Returns a function with the signature of `fetch`, as far as jose needs it. */
export function fetchOver({ ca, token }: ApiServer): FetchImplementation {
  return (url, { headers, signal }) =>
    new Promise((resolve, reject) => {
      const shown = token === undefined ? {} : { authorization: `Bearer ${token()}` };
      const options = {
        headers: { ...Object.fromEntries(headers), ...shown },
        signal,
        ca: typeof ca === 'function' ? ca() : ca,
      };
      const asked = request(url, options, (answer) => {
        if (answer.statusCode !== 200) {
          answer.destroy();
          reject(new Error(`${url}: status ${answer.statusCode} instead of keys`));
          return;
        }
        const chunks: Buffer[] = [];
        let bytes = 0;
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.byteLength;
          if (bytes > bytesMax) answer.destroy(new Error(`${url}: more than ${bytesMax} bytes`));
          else chunks.push(chunk);
        });
        answer.on('error', reject);
        answer.once('end', () => resolve(new Response(Buffer.concat(chunks))));
      });
      asked.on('error', reject);
      asked.once('upgrade', (_, socket) => {
        socket.destroy();
        reject(new Error(`${url}: the server switched to another protocol instead of sending keys`));
      });
      asked.end();
    });
}
