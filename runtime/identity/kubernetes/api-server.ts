/**
 * Requests to the API server, whose certificate only the authorities of the cluster sign: `fetch` of Node
 * takes no others than its own. Used for the keys of tokens.
 */
import { request } from 'node:https';
import type { FetchImplementation } from 'jose';

export interface ApiServer {
  /** PEM: of authorities; a function reads it anew. */
  readonly ca: string | (() => string);
  /** To be shown. */
  readonly token?: () => string;
}

/** Keys are some KiB. */
const bytesMax = 1 << 20;

/** As `fetch`, for what jose asks. */
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
        reject(new Error(`${url}: another protocol instead of keys`));
      });
      asked.end();
    });
}
