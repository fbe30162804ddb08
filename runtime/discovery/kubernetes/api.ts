/**
 * GET requests to the API server: a JSON object, or the lines of a watch. Each has limits of time and size,
 * so that a server that is silent or sends without end cannot hold its client. Used by endpoint-slices.ts.
 */
import { type IncomingMessage, request as insecure } from 'node:http';
import { request as secure } from 'node:https';
import { StringDecoder } from 'node:string_decoder';
import { apiBytesMax, registryTimeoutMs } from '../limits.ts';
import type { Access } from './credentials.ts';

/** An answer of the API server that is no success; 410 says that a version is too old. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(`the API server answered ${status}: ${message}`);
    this.status = status;
  }
}

/** The bytes of an answer. Throws when none has come for `silenceMs`. */
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

/** Resolves with the answer when its head has come, whatever its status. */
async function head(access: Access, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { server, options } = await access();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const late = new Error(`the API server did not answer within ${registryTimeoutMs} ms`);
    const timer = setTimeout(() => asked.destroy(late), registryTimeoutMs);
    const url = new URL(server.replace(/\/+$/, '') + path);
    const headers = { accept: 'application/json', ...(options.headers as object | undefined) };
    // Only a KubeConfig may name a server without TLS, such as that of `kubectl proxy`.
    const request = url.protocol === 'http:' ? insecure : secure;
    // A connection of its own, which a watch holds, and which ends with a failure.
    const asked = request(url, { agent: false, ...options, headers, signal }, (answer) => {
      clearTimeout(timer);
      // Whoever reads the answer gets the error; nobody may read it yet.
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

/** Throws for a text that is no JSON object. */
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

/** The message of a Status object, or the beginning of another text. */
function reasonIn(text: string): string {
  try {
    const { message } = parsed(text);
    if (typeof message === 'string') return message;
  } catch {
    // A proxy in front of the API server answers with other texts.
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

/** The lines of a watch, which has begun. */
export interface Lines extends AsyncIterable<string> {
  /** Ends the connection of a watch whose lines are not read. */
  destroy(): void;
}

/**
 * Resolves when the watch at `path` has begun, with its lines. The iteration ends when the API
 * server ends the watch, and throws when the connection is lost or brings no byte for `silenceMs`.
 */
export async function watch(
  access: Access,
  path: string,
  silenceMs: number,
  signal: AbortSignal,
): Promise<Lines> {
  const answer = await checkedHead(access, path, signal);
  // A watch alone keeps no process alive.
  answer.socket.unref();
  return {
    async *[Symbol.asyncIterator]() {
      const decoder = new StringDecoder();
      let rest = '';
      for await (const chunk of chunksOf(answer, silenceMs)) {
        const lines = (rest + decoder.write(chunk)).split('\n');
        rest = lines.pop() ?? '';
        if (rest.length > apiBytesMax) throw new Error(`the API server sent a line of ${rest.length} bytes`);
        for (const line of lines) if (line.trim() !== '') yield line;
      }
      if (rest.trim() !== '') throw new Error('the API server ended the watch within a line');
    },
    destroy: () => answer.destroy(),
  };
}
