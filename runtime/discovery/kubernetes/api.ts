/**
 * GET requests to the Kubernetes API server. The response is a JSON object, or the lines of a watch. Each
 * request has limits of time and size, so that a server that sends nothing or sends without end cannot block
 * its client. endpoint-slices.ts uses this file.
 */
import { type IncomingMessage, request as insecure } from 'node:http';
import { request as secure } from 'node:https';
import { StringDecoder } from 'node:string_decoder';
import { apiBytesMax, eventBytesMax, registryTimeoutMs } from '../limits.ts';
import type { Access } from './credentials.ts';

/**
 * A response of the API server that is not a success. Status 410 means that the requested version is too old.
 */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(`the API server answered ${status}: ${message}`);
    this.status = status;
  }
}

/** Yields the bytes of a response. Throws when no bytes have come for `silenceMs`. */
async function* chunksOf(answer: IncomingMessage, silenceMs: number): AsyncGenerator<Buffer> {
  const silent = (): unknown => answer.destroy(new Error(`the API server was silent for ${silenceMs} ms`));
  const timer = setTimeout(silent, silenceMs).unref();
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      timer.refresh();
      yield chunk;
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with the response when its headers have arrived, for every status. */
async function head(access: Access, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { server, options } = await access();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const late = new Error(`the API server did not answer within ${registryTimeoutMs} ms`);
    const timer = setTimeout(() => asked.destroy(late), registryTimeoutMs);
    const url = new URL(server.replace(/\/+$/, '') + path);
    const headers = { accept: 'application/json', ...(options.headers as object | undefined) };
    // Only a KubeConfig may name a server without TLS, for example `kubectl proxy`.
    const request = url.protocol === 'http:' ? insecure : secure;
    // Each watch has its own connection, which is closed after a failure.
    const asked = request(url, { agent: false, ...options, headers, signal }, (answer) => {
      clearTimeout(timer);
      // The code that reads the response gets the error. This listener handles errors that occur before that
      // code begins to read.
      answer.on('error', () => undefined);
      resolve(answer);
    });
    asked.on('socket', (socket) => socket.setKeepAlive(true, registryTimeoutMs));
    asked.once('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('the API server switched to another protocol'));
    });
    asked.once('close', () => clearTimeout(timer));
    asked.on('error', reject);
    asked.end();
  });
}

async function bodyOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(answer, registryTimeoutMs)) {
    bytes += chunk.byteLength;
    if (bytes > apiBytesMax) throw new Error(`the API server sent more than ${apiBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Throws for a text that is not a JSON object. */
export function parsed(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new Error(`the API server sent no JSON object: ${JSON.stringify(text.slice(0, 100))}`);
}

/** Returns the message of a Status object, or the beginning of any other text. */
function reasonIn(text: string): string {
  try {
    const { message } = parsed(text);
    if (typeof message === 'string') return message;
  } catch {
    // A proxy in front of the API server may send other texts.
  }
  return text.slice(0, 200);
}

async function checkedHead(access: Access, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const answer = await head(access, path, signal);
  const { statusCode = 0 } = answer;
  if (statusCode === 200) return answer;
  throw new ApiError(statusCode, reasonIn(await bodyOf(answer)));
}

/** Returns the object at `path`. */
export async function get(
  access: Access,
  path: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  return parsed(await bodyOf(await checkedHead(access, path, signal)));
}

/** Yields the lines of a watch. */
export interface Lines extends AsyncIterable<string> {
  /** Ends the connection of a watch whose lines are not read. */
  destroy(): void;
}

/**
 * Resolves with the lines of the watch at `path` when the watch has begun. The iteration ends when the API
 * server ends the watch. It throws when the connection is lost, or when no byte arrives for `silenceMs`.
 */
export async function watch(
  access: Access,
  path: string,
  silenceMs: number,
  signal: AbortSignal,
): Promise<Lines> {
  const answer = await checkedHead(access, path, signal);
  // A watch does not keep the process alive.
  answer.socket.unref();
  return {
    async *[Symbol.asyncIterator]() {
      const decoder = new StringDecoder();
      // The parts of a line are joined only when the end of the line has come. If each chunk were joined at
      // once, each would copy the whole beginning of a long line.
      let parts: string[] = [];
      let length = 0;
      for await (const chunk of chunksOf(answer, silenceMs)) {
        const [first = '', ...others] = decoder.write(chunk).split('\n');
        parts.push(first);
        length += first.length;
        if (length > eventBytesMax)
          throw new Error(`the API server sent an event of more than ${eventBytesMax} bytes`);
        const rest = others.pop();
        if (rest === undefined) continue;
        for (const line of [parts.join(''), ...others]) if (line.trim() !== '') yield line;
        parts = [rest];
        length = rest.length;
      }
      if (parts.join('').trim() !== '') throw new Error('the API server ended the watch within a line');
    },
    destroy: () => answer.destroy(),
  };
}
