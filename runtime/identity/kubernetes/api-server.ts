/**
 * Requests to the API server. Its certificate is signed by the authorities of the cluster, and Node's `fetch`
 * has no option to accept them. Servers use this file to get the keys of tokens.
 */
import { request } from 'node:https';
import type { FetchImplementation } from 'jose';

export interface ApiServer {
  /** Certificates of the authorities in PEM. A function is called again for each request. */
  readonly ca: string | (() => string);
  /** Returns the token to send. */
  readonly token?: () => string;
}

/** Limit of a response in bytes. The keys have a few KiB. */
const bytesMax = 1 << 20;

/** Returns a function with the part of the signature of `fetch` that jose needs. */
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
