/**
 * A client of an etcd cluster over grpc-js. It talks to one member at a time, with TLS and a token. It
 * repeats no request, because its callers start over after a failure with a new list or a new lease. All of
 * this file runs on one JS thread.
 */
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import { credentials, Client as GrpcClient } from '@grpc/grpc-js';
import { createGrpcClient } from '../../adapters/grpc/client.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { CallOptions, Client } from '../../core/types.ts';
import { etcdBytesMax, registryTimeoutMs } from '../limits.ts';
import { AuthDefinition, KVDefinition, LeaseDefinition, WatchDefinition } from './gen/rpc.rdma.ts';
import type { ResolvedEtcdOptions } from './options.ts';

/** One member of the cluster. */
export interface Member {
  readonly address: string;
  readonly grpc: GrpcClient;
  readonly kv: Client<typeof KVDefinition>;
  readonly watch: Client<typeof WatchDefinition>;
  readonly lease: Client<typeof LeaseDefinition>;
  readonly auth: Client<typeof AuthDefinition>;
}

/** Error codes of a member after which the request may succeed at another member. */
const elsewhere: readonly number[] = [Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED, Status.INTERNAL];

const pem = (given: string | Uint8Array | undefined): Buffer | null =>
  given === undefined ? null : Buffer.from(given as string);

function memberOf(what: string, endpoint: string, { ca, cert, key }: ResolvedEtcdOptions): Member {
  const [, scheme = '', address] = /^(?:(https?):\/\/)?([^/]+:\d+)\/?$/.exec(endpoint) ?? [];
  if (address === undefined)
    throw new TypeError(
      `${what}: endpoints: ${endpoint} is none; give https://host:port or http://host:port`,
    );
  const secure = scheme === 'https';
  if (!secure && (ca ?? cert ?? key) !== undefined)
    throw new TypeError(`${what}: endpoints: ${endpoint} would be used without TLS; give https://${address}`);
  const host = address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  const byNumber = secure && isIP(host) !== 0;
  const identity = secure
    ? credentials.createSsl(pem(ca), pem(key), pem(cert), {
        ...(byNumber && { checkServerIdentity: (_, shown) => checkServerIdentity(host, shown) }),
      })
    : credentials.createInsecure();
  const grpc = new GrpcClient(address, identity, {
    // grpc-js must not delay a new attempt by its long pauses, because this client decides when a member is
    // tried again.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
    'grpc.max_receive_message_length': etcdBytesMax,
    // TLS sends the name of the server. The name must not be an IP address, for which Node.js 26 would throw.
    // The certificate is nevertheless compared with the IP address.
    ...(byNumber && { 'grpc.ssl_target_name_override': 'etcd' }),
  });
  return {
    address,
    grpc,
    kv: createGrpcClient(KVDefinition, grpc),
    watch: createGrpcClient(WatchDefinition, grpc),
    lease: createGrpcClient(LeaseDefinition, grpc),
    auth: createGrpcClient(AuthDefinition, grpc),
  };
}

export class EtcdClient {
  readonly #members: readonly Member[];
  readonly #username: string;
  readonly #password: string;
  readonly #requestMs: number;
  #current = 0;
  /**
   * The token of this client. It is undefined before the first request, and after the server has refused it.
   */
  #token: string | undefined;

  /**
   * `what` is the name of the function that received the options, for error texts. `requestMs` is the time
   * limit of one request. Throws for invalid options.
   */
  constructor(what: string, options: ResolvedEtcdOptions, requestMs: number = registryTimeoutMs) {
    const { endpoints = [], username, password, cert, key } = options;
    if (endpoints.length === 0)
      throw new TypeError(`${what}: endpoints are missing: give the addresses of etcd's members`);
    if ((cert === undefined) !== (key === undefined))
      throw new TypeError(`${what}: cert and key belong together; give both`);
    this.#members = endpoints.map((endpoint) => memberOf(what, endpoint, options));
    this.#username = username;
    this.#password = password;
    this.#requestMs = requestMs;
  }

  /**
   * Calls `use` with the current member and the options of a request to it. After a failure the next request
   * goes to the next member. When a token is refused, a new token is requested once.
   */
  async with<T>(signal: AbortSignal, use: (member: Member, options: CallOptions) => Promise<T>): Promise<T> {
    return this.#renewing(() => this.#attempt(this.#member, signal, use), signal);
  }

  /**
   * Calls `use` with all members at once, for a request that cannot be repeated later. When a member refuses
   * the token, a new token is requested once. Resolves with the first success. Rejects when all members have
   * failed.
   */
  async withAny<T>(
    signal: AbortSignal,
    use: (member: Member, options: CallOptions) => Promise<T>,
  ): Promise<T> {
    const each = (member: Member) => this.#renewing(() => this.#attempt(member, signal, use), signal);
    return Promise.any(this.#members.map(each));
  }

  close(): void {
    for (const { grpc } of this.#members) grpc.close();
  }

  /** The member that gets the next request. */
  get #member(): Member {
    return this.#members[this.#current % this.#members.length]!;
  }

  /** Makes a second attempt when the token of the first attempt was refused. */
  async #renewing<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const token = this.#token;
    try {
      return await attempt();
    } catch (error) {
      // Another member's attempt may have replaced the refused token already.
      if (token === undefined || this.#token === token || signal.aborted) throw error;
      return await attempt();
    }
  }

  async #attempt<T>(
    member: Member,
    signal: AbortSignal,
    use: (member: Member, options: CallOptions) => Promise<T>,
  ): Promise<T> {
    const options = { timeoutMs: this.#requestMs, signal };
    try {
      if (this.#username !== '' && this.#token === undefined) {
        const name = { name: this.#username, password: this.#password };
        this.#token = (await member.auth.authenticate(name, options)).token;
      }
      const token = this.#token === undefined ? {} : { metadata: { token: this.#token } };
      return await use(member, { ...options, ...token });
    } catch (cause) {
      const error = RpcError.from(cause, Status.UNAVAILABLE);
      if (elsewhere.includes(error.code)) ++this.#current;
      // etcd reports an expired token with several codes; the text of the error is the same.
      if (error.code === Status.UNAUTHENTICATED || /auth|token|permission/.test(error.rawMessage))
        this.#token = undefined;
      throw new RpcError(error.code, `etcd ${member.address}: ${error.rawMessage}`, { cause });
    }
  }
}
