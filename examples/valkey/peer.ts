/**
 * A server for tests and for trying the connector without Valkey. It supports a few commands in RESP 2, on a
 * stream. The stream itself speaks the server's side of the protocol.
 */
import type { Duplex } from 'node:stream';

const simple = (text: string): Buffer => Buffer.from(`+${text}\r\n`);
const failure = (text: string): Buffer => Buffer.from(`-ERR ${text}\r\n`);
const bulk = (bytes: Buffer | undefined): Buffer =>
  bytes === undefined
    ? Buffer.from('$-1\r\n')
    : Buffer.concat([Buffer.from(`$${bytes.byteLength}\r\n`), bytes, Buffer.from('\r\n')]);

/**
 * Reads commands, which are arrays of bulk strings, as they arrive. Bytes of an unfinished command wait for
 * the rest of it.
 */
export class CommandReader {
  #bytes: Buffer = Buffer.alloc(0);

  *take(chunk: Buffer): Generator<Buffer[]> {
    this.#bytes = this.#bytes.byteLength === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    for (;;) {
      const found = this.#one();
      if (found === undefined) return;
      this.#bytes = this.#bytes.subarray(found.end);
      yield found.words;
    }
  }

  #one(): { words: Buffer[]; end: number } | undefined {
    const head = this.#length('*', 0);
    if (head === undefined) return undefined;
    const words: Buffer[] = [];
    let at = head.end;
    for (let i = 0; i < head.value; ++i) {
      const length = this.#length('$', at);
      if (length === undefined || this.#bytes.byteLength < length.end + length.value + 2) return undefined;
      words.push(this.#bytes.subarray(length.end, length.end + length.value));
      at = length.end + length.value + 2;
    }
    return { words, end: at };
  }
  #length(kind: string, from: number): { value: number; end: number } | undefined {
    const end = this.#bytes.indexOf('\r\n', from);
    if (end < 0) return undefined;
    const text = this.#bytes.toString('latin1', from, end);
    if (!text.startsWith(kind) || !/^\d+$/.test(text.slice(1))) throw new Error(`'${text}' is not RESP`);
    return { value: Number(text.slice(1)), end: end + 2 };
  }
}

/** Serves one client until the client disconnects. Resolves to the number of commands. */
export async function servePeer(stream: Duplex, values = new Map<string, Buffer>()): Promise<number> {
  const requests = new CommandReader();
  let served = 0;
  const answer = ([name, key, value]: Buffer[]): Buffer => {
    const command = name?.toString().toUpperCase();
    const at = key?.toString() ?? '';
    switch (command) {
      case 'PING':
        return key === undefined ? simple('PONG') : bulk(key);
      case 'SET':
        if (value === undefined) return failure('SET needs a key and a value');
        values.set(at, Buffer.from(value));
        return simple('OK');
      case 'GET':
        return bulk(values.get(at));
      case 'INCR': {
        const next = Number(values.get(at)?.toString() ?? '0') + 1;
        values.set(at, Buffer.from(String(next)));
        return Buffer.from(`:${next}\r\n`);
      }
      case 'QUIT':
      case 'CLIENT':
        return simple('OK');
      case 'INFO':
        return bulk(Buffer.from('redis_version:7.2.4\r\nloading:0\r\n'));
      default:
        return failure(`unknown command '${command}'`);
    }
  };
  try {
    for await (const chunk of stream) {
      for (const words of requests.take(chunk as Buffer)) {
        ++served;
        stream.write(answer(words));
        if (words[0]?.toString().toUpperCase() !== 'QUIT') continue;
        stream.end();
        return served;
      }
    }
  } catch (error) {
    stream.destroy(error as Error);
  }
  return served;
}
