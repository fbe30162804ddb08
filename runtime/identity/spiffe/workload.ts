/**
 * The identity that an agent on this host provides for this process (SPIFFE Workload API, gRPC over a unix
 * socket). It is updated when the agent has new certificates. While the agent cannot be reached, its last
 * certificates are used until they expire. A process usually has one such object, and uses it on the JS
 * thread that created it.
 */
import { setTimeout } from 'node:timers/promises';
import { Client, credentials, type Client as GrpcClient } from '@grpc/grpc-js';
import { createGrpcClient } from '../../adapters/grpc/client.ts';
import { wallMs } from '../../clock.ts';
import type { ChannelTls, ServerTls } from '../../control/tls/tls-options.ts';
import { textOf } from '../../core/foreign.ts';
import { logged, warn } from '../../core/log.ts';
import { checkedOptions, type OptionRules } from '../../core/options.ts';
import { inRoot } from '../../core/scopes.ts';
import type { Warn } from '../../core/warnings.ts';
import { SpiffeWorkloadAPIDefinition, type X509SVIDResponse } from './gen/workload.rdma.ts';
import { type Svid, svidOf } from './svid.ts';
import { trustDomainOf } from './trust-domains.ts';
import type { ExpectedServer, Workload, WorkloadOptions } from './workload-type.ts';

const rules: OptionRules = {
  endpoint: { kind: 'text', default: '', maxBytes: 4096 },
  id: { kind: 'text', default: '', maxBytes: 2048 },
  log: { kind: 'function' },
};

/** The specification requires this entry, so that a web page cannot trigger a request. */
const metadata = { 'workload.spiffe.io': 'true' };
const pauseMs = { first: 1000, max: 30_000 } as const;

/** Returns the address in the form of grpc-js. */
function target(endpoint: string): string {
  const [, path] = /^unix:(?:\/\/)?(\/.+)$/.exec(endpoint) ?? [];
  if (path !== undefined) return `unix:${path}`;
  const [, tcp] = /^tcp:\/\/([^/]+:\d+)$/.exec(endpoint) ?? [];
  if (tcp !== undefined) return tcp;
  const given =
    endpoint === '' ? 'no endpoint is given, and SPIFFE_ENDPOINT_SOCKET is not set' : `${endpoint} is none`;
  throw new TypeError(`createWorkload: endpoint: ${given}; give unix:/path or tcp://ADDRESS:PORT`);
}

class AgentWorkload implements Workload {
  readonly #grpc: GrpcClient;
  readonly #id: string;
  readonly #log: Warn;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #svid: Svid | undefined;
  #waiting: (() => void)[] = [];
  /** The reason why no newer identity is available. */
  #trouble = 'the agent has not answered yet';

  /** Throws for invalid options. */
  constructor(options: WorkloadOptions = {}) {
    const { endpoint, id, log } = checkedOptions<Required<WorkloadOptions>>('createWorkload', options, rules);
    this.#grpc = new Client(
      target(endpoint || (process.env.SPIFFE_ENDPOINT_SOCKET ?? '')),
      credentials.createInsecure(),
    );
    this.#id = id;
    this.#log = logged(log ?? warn);
    // Run in the root context. The loop may run as long as the process, and must not keep the stores of its
    // creator alive.
    this.#running = inRoot(this.#run, this);
  }

  get identity(): string | undefined {
    return this.#svid?.id;
  }

  async ready(): Promise<void> {
    await this.#current();
  }

  server(): () => Promise<ServerTls> {
    return this.#source(({ material, domains }) => ({
      ...material,
      ca: domains.ca,
      checkClientIdentity: (certificate) => domains.fault(certificate),
    }));
  }

  channel({ identity }: ExpectedServer): () => Promise<ChannelTls> {
    if (identity === undefined)
      throw new TypeError('channel: identity: the SPIFFE id of the server is missing');
    const ids = [identity].flat();
    const domain = ids.map(trustDomainOf)[0];
    if (domain === undefined || ids.some((id) => trustDomainOf(id) !== domain))
      throw new TypeError('channel: identity: takes SPIFFE ids, all of one trust domain');
    // Only these authorities may issue the ids, so TLS gets only these authorities.
    return this.#source(({ material, domains }) => ({ ...material, ca: domains.caOf(ids), identity }));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#running;
    this.#grpc.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Returns a source whose result is the same object until the identity changes. */
  #source<T>(make: (svid: Svid) => T): () => Promise<T> {
    let from: Svid | undefined;
    let made: T | undefined;
    return async () => {
      const svid = await this.#current();
      if (svid !== from || made === undefined) made = make(svid);
      from = svid;
      return made;
    };
  }

  async #current(): Promise<Svid> {
    while (this.#svid === undefined) {
      if (this.#closing.signal.aborted) throw new Error(`the workload was closed: ${this.#trouble}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    if (this.#svid.expiresAtMs <= wallMs())
      throw new Error(`the certificate of ${this.#svid.id} has expired: ${this.#trouble}`);
    return this.#svid;
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const client = createGrpcClient(SpiffeWorkloadAPIDefinition, this.#grpc);
    let pause: number = pauseMs.first;
    while (!signal.aborted) {
      let why = 'it has ended the stream';
      try {
        for await (const response of client.fetchX509SVID({}, { metadata, signal })) {
          this.#take(response);
          pause = pauseMs.first;
        }
      } catch (error) {
        why = textOf(error);
      }
      this.#trouble = `the agent gives no identity: ${why}`;
      if (!signal.aborted) this.#log(`spiffe: ${this.#trouble}; asked again in ${pause} ms`);
      await setTimeout(pause, undefined, { signal }).catch(() => undefined);
      pause = Math.min(pauseMs.max, 2 * pause);
    }
  }

  /** Takes the identity of a response. A response that cannot be used changes nothing. */
  #take(response: X509SVIDResponse): void {
    try {
      const { svids } = response;
      const wanted = svids.find(({ spiffeId, hint }) => [spiffeId, hint, ''].includes(this.#id));
      const ids = svids.map(({ spiffeId }) => spiffeId).join(', ') || 'none';
      if (wanted === undefined)
        throw new Error(`identity ${this.#id || '(any)'} is not among those of the agent: ${ids}`);
      this.#svid = svidOf(wanted, response);
      for (const fault of this.#svid.faults) this.#log(`spiffe: ${fault}`);
      this.#trouble = 'the agent has sent no newer one';
      this.#wake();
    } catch (error) {
      this.#trouble = textOf(error);
      this.#log(`spiffe: the answer of the agent cannot be used: ${this.#trouble}`);
    }
  }
}

/**
 * Creates a workload, which asks the agent of this host for the identity of this process. Throws for invalid
 * options.
 */
export function createWorkload(options?: WorkloadOptions): Workload {
  return new AgentWorkload(options);
}
