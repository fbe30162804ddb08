/**
 * Simulates etcd with a script. The test sets the answer to each list request, and writes to each watch,
 * leaves the watch silent, or cuts it. Clients use the scripted etcd by gRPC, like a real one.
 */
import { Server as GrpcServer, type Metadata, ServerCredentials, status } from '@grpc/grpc-js';
import { KVDefinition, WatchDefinition } from '../../runtime/discovery/etcd/gen/rpc.rdma.ts';

/** A watch that a client has opened. */
export interface Watch {
  readonly metadata: Metadata;
  /** The requests so far. */
  readonly requests: { readonly requestUnion: { readonly case?: string; readonly value?: unknown } }[];
  write(response: object): void;
  end(): void;
  /** Ends the watch with a gRPC error. */
  fail(message: string): void;
}

interface GrpcStream {
  readonly metadata: Metadata;
  write(response: unknown): void;
  end(): void;
  emit(event: 'error', error: object): void;
  on(event: string, listener: (value: never) => void): void;
}
type Reply = (error: object | null, response?: unknown) => void;

const bytes = (text: string): Uint8Array => Buffer.from(text);
const entryOf = (address: string): string => JSON.stringify({ Op: 0, Addr: address });
/** Makes entries and changes; the key is the one that `register` writes. */
export const kv = (address: string, value = entryOf(address)): object => ({
  key: bytes(`s/${address}`),
  value: bytes(value),
});
export const putOf = (address: string): object => ({ type: 0, kv: kv(address) });
export const deleteOf = (address: string): object => ({ type: 1, kv: { key: bytes(`s/${address}`) } });

export class ScriptedEtcd {
  /** The answer to lists: either addresses or the result of a handler. */
  list: string[] | ((reply: Reply) => void) = [];
  revision = 10n;
  lists = 0;
  readonly watches: Watch[] = [];
  readonly #server = new GrpcServer();
  #port = 0;

  async start(): Promise<this> {
    this.#server.addService(KVDefinition.methods, {
      range: ((_: unknown, reply: Reply) => {
        ++this.lists;
        if (typeof this.list === 'function') this.list(reply);
        else
          reply(null, { header: { revision: this.revision }, kvs: this.list.map((address) => kv(address)) });
      }) as never,
      put: ((_: unknown, reply: Reply) => reply(null, {})) as never,
    });
    this.#server.addService(WatchDefinition.methods, {
      watch: ((stream: GrpcStream) => {
        const requests: Watch['requests'] = [];
        stream.on('data', (request: never) => requests.push(request));
        stream.on('error', () => undefined);
        this.watches.push({
          metadata: stream.metadata,
          requests,
          write: (response) => stream.write(response),
          end: () => stream.end(),
          fail: (details) => stream.emit('error', { code: status.UNAVAILABLE, details }),
        });
      }) as never,
    });
    const at = `127.0.0.1:${this.#port}`;
    this.#port = await new Promise<number>((resolve, reject) =>
      this.#server.bindAsync(at, ServerCredentials.createInsecure(), (error, port) =>
        error ? reject(error) : resolve(port),
      ),
    );
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Returns the newest watch. */
  get watch(): Watch {
    return this.watches.at(-1)!;
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}
