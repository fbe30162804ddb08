/**
 * Simulates an API server of Kubernetes as its public documentation describes it ("Kubernetes API Concepts").
 * The server has lists in pages, watches with bookmarks, and errors as Status objects. A test sets the slices
 * that exist and the faults.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { Authority } from '../security/certificates.ts';

export interface EndpointGiven {
  readonly address: string;
  readonly ready?: boolean | null;
  readonly serving?: boolean;
  readonly terminating?: boolean;
  readonly zone?: string;
  readonly hints?: readonly string[];
}

export interface SliceGiven {
  readonly name: string;
  readonly endpoints: readonly (string | EndpointGiven)[];
  readonly ports?: readonly { readonly name?: string; readonly port: number }[];
  readonly addressType?: string;
}

/** Returns the object as the API server sends it. */
export function objectOf(slice: SliceGiven, version: number): object {
  const endpoints = slice.endpoints.map((each) => {
    const given: EndpointGiven = typeof each === 'string' ? { address: each } : each;
    const { address, ready = true, serving, terminating, zone, hints } = given;
    return {
      addresses: [address],
      conditions: { ready, serving, terminating },
      zone,
      nodeName: 'node-1',
      targetRef: { kind: 'Pod', name: `pod-${address}` },
      ...(hints && { hints: { forZones: hints.map((name) => ({ name })) } }),
    };
  });
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name: slice.name, namespace: 'shop', resourceVersion: String(version) },
    addressType: slice.addressType ?? 'IPv4',
    ports: slice.ports ?? [{ name: '', port: 5000, protocol: 'TCP' }],
    endpoints,
  };
}

export const statusOf = (code: number, message: string): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  message,
});

/** A watch that a client has opened. */
export interface Watching {
  readonly query: URLSearchParams;
  readonly token: string;
  /** Sends bytes as they are. */
  raw(text: string): void;
  event(type: string, object: object): void;
  end(): void;
  cut(): void;
  readonly closed: boolean;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export class ApiServer {
  readonly authority = new Authority('kubernetes');
  readonly slices = new Map<string, SliceGiven>();
  version = 100;
  token = 'first';
  /** Replaces the server's own answer to lists or watches. */
  answerList: Handler | undefined;
  answerWatch: Handler | undefined;
  pageSize = Number.POSITIVE_INFINITY;
  readonly lists: URLSearchParams[] = [];
  readonly watches: Watching[] = [];
  /** All changes, which a watch from an older version gets first. */
  readonly #changes: { readonly version: number; readonly type: string; readonly object: object }[] = [];
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  get watch(): Watching {
    return this.watches.at(-1)!;
  }

  async start(): Promise<this> {
    const { cert, key } = this.authority.issue({ addresses: ['127.0.0.1'] });
    this.#server = createServer({ cert, key }, (request, response) => this.#serve(request, response));
    this.#server.on('secureConnection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as { port: number }).port;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Writes a slice, as the slice's controller does, and sends it to all watches. */
  set(slice: SliceGiven): void {
    const type = this.slices.has(slice.name) ? 'MODIFIED' : 'ADDED';
    this.slices.set(slice.name, slice);
    this.#tell(type, objectOf(slice, ++this.version));
  }

  delete(name: string): void {
    const slice = this.slices.get(name)!;
    this.slices.delete(name);
    this.#tell('DELETED', objectOf(slice, ++this.version));
  }

  #tell(type: string, object: object): void {
    this.#changes.push({ version: this.version, type, object });
    for (const watch of this.watches) if (!watch.closed) watch.event(type, object);
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://a');
    const token = (request.headers.authorization ?? '').replace('Bearer ', '');
    const fail = (code: number, message: string): unknown =>
      response.writeHead(code).end(JSON.stringify(statusOf(code, message)));
    if (token !== this.token) fail(401, 'Unauthorized');
    else if (pathname !== '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices')
      fail(404, 'the server could not find the requested resource');
    else if (searchParams.get('watch') === '1') this.#watch(request, response, searchParams, token);
    else this.#list(request, response, searchParams);
  }

  #list(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    this.lists.push(query);
    if (this.answerList !== undefined) {
      this.answerList(request, response);
      return;
    }
    const from = Number(query.get('continue') ?? 0);
    const all = [...this.slices.values()].map((slice) => objectOf(slice, this.version));
    const end = from + this.pageSize;
    const metadata = {
      resourceVersion: String(this.version),
      continue: end < all.length ? String(end) : '',
    };
    response.end(JSON.stringify({ kind: 'EndpointSliceList', metadata, items: all.slice(from, end) }));
  }

  #watch(request: IncomingMessage, response: ServerResponse, query: URLSearchParams, token: string): void {
    const watching: Watching = {
      query,
      token,
      raw: (text) => response.write(text),
      event: (type, object) => response.write(`${JSON.stringify({ type, object })}\n`),
      end: () => response.end(),
      cut: () => response.destroy(),
      get closed() {
        return response.writableEnded || response.destroyed;
      },
    };
    this.watches.push(watching);
    if (this.answerWatch !== undefined) this.answerWatch(request, response);
    else {
      response.writeHead(200).flushHeaders();
      const from = Number(query.get('resourceVersion'));
      for (const { version, type, object } of this.#changes) if (version > from) watching.event(type, object);
    }
  }
}
