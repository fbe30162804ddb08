/**
 * What a handler sees of a call that has come over real gRPC, and what becomes of the metadata and errors
 * that it leaves. For the adapters of grpc-js and nice-grpc, which say what they have as a `GrpcCall`.
 */
import type { MethodDefinition } from '../../codec/types.ts';
import { ContextValues } from '../../core/context-values.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { detailsKey, encodeDetails } from '../../core/errors/status-details.ts';
import type { HandlerContext } from '../../core/handler-context.ts';
import { Metadata, type MetadataValue, receivedMetadata } from '../../core/metadata.ts';
import { KnownPeer, type PeerInfo } from '../../core/peer.ts';
import { deadlinePassed, handlerFailed } from '../../server/call-faults.ts';
import { handlerController } from '../../server/handler-signal.ts';

/** A call as a gRPC server has it. */
export interface GrpcCall {
  readonly peer: string;
  /** What has come, key by key. */
  metadata(): Iterable<readonly [string, Iterable<MetadataValue>]>;
  /** Time left in ms, never below 0; undefined when there is no limit, or the server does not tell. */
  timeoutMs(): number | undefined;
  sendHeader(header: Metadata): void;
}

/** How a failed call ends. */
export interface GrpcFailure {
  readonly code: number;
  readonly details: string;
  readonly trailer: Metadata;
}

/** What HTTP/2 carries as text. grpc-js throws for anything else, where nobody catches it. */
export const printable = /^[ -~]*$/;

function checkCarried(method: string, what: string, metadata: Metadata): void {
  for (const [key, value] of metadata) {
    if (typeof value === 'string' && !printable.test(value)) {
      const text = `${method}: ${what} ${key}: gRPC carries printable ASCII; put other text under a -bin key`;
      throw new RpcError(Status.INTERNAL, text);
    }
  }
}

export class GrpcContext implements HandlerContext {
  readonly method: string;
  readonly header = new Metadata();
  readonly trailer = new Metadata();
  readonly values: ContextValues = new ContextValues();
  readonly #call: GrpcCall;
  #peer: PeerInfo | undefined;
  #metadata: Metadata | undefined;
  #controller: AbortController | undefined;
  #cancelled: RpcError | undefined;
  /** The header may be sent ahead of the answer. */
  readonly #early: boolean;
  #headerSent = false;
  #done = false;

  constructor({ fullName, requestStream, responseStream }: MethodDefinition, call: GrpcCall) {
    this.method = fullName;
    this.#call = call;
    this.#early = requestStream || responseStream;
  }

  /** What gRPC has verified, its own interceptors know. */
  get peer(): PeerInfo {
    this.#peer ??= new KnownPeer(this.#call.peer);
    return this.#peer;
  }

  get metadata(): Metadata {
    if (this.#metadata === undefined) {
      const entries: [string, MetadataValue][] = [];
      for (const [key, values] of this.#call.metadata())
        for (const value of values) entries.push([key, value]);
      this.#metadata = receivedMetadata(entries);
    }
    return this.#metadata;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = handlerController();
      if (this.#cancelled !== undefined) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  /** Why nobody waits for the answer any more, if so. */
  get cancelled(): RpcError | undefined {
    return this.#cancelled;
  }

  timeoutMs(): number | undefined {
    return this.#call.timeoutMs();
  }

  /**
   * Once; it also goes by itself, with the first message or the end. That of a method without streams goes
   * with its response, as everywhere.
   */
  sendHeader(): void {
    if (this.#early) this.#sendHeader();
  }

  #sendHeader(): void {
    if (this.#headerSent) return;
    this.#headerSent = true;
    checkCarried(this.method, 'header', this.header);
    if (this.header.size > 0) this.#call.sendHeader(this.header);
  }

  /**
   * Nobody waits any more. gRPC servers also say so when a call has ended well; the handler should not hear
   * of that.
   */
  cancel(): void {
    if (this.#done || this.#cancelled !== undefined) return;
    this.#cancelled =
      this.timeoutMs() === 0
        ? deadlinePassed(this.method)
        : new RpcError(Status.CANCELLED, `${this.method}: the client has given it up`);
    this.#controller?.abort(this.#cancelled);
  }

  /**
   * What the handler reads its requests from. Node's HTTP/2 clients end a stream before they reset it, so the
   * end of requests that nobody waits for looks like any other; the reset is there before the next turn of
   * the event loop.
   */
  async *requests(messages: AsyncIterable<unknown>): AsyncGenerator<unknown, void, undefined> {
    try {
      yield* messages;
    } catch (error) {
      throw this.#cancelled ?? error;
    }
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#cancelled !== undefined) throw this.#cancelled;
  }

  /** The handler is done: its trailer. */
  finish(): Metadata {
    this.#sendHeader();
    checkCarried(this.method, 'trailer', this.trailer);
    this.#done = true;
    return this.trailer;
  }

  /** The handler has thrown `error`. */
  fail(error: unknown): GrpcFailure {
    this.#done = true;
    const known = error instanceof RpcError ? error : undefined;
    const details = known?.rawMessage ?? handlerFailed(this.method);
    const code = known?.code ?? Status.INTERNAL;
    // What cannot be sent is left out: the error says more than it.
    const carry = (action: () => void): void => {
      try {
        action();
      } catch {}
    };
    carry(() => this.#sendHeader());
    const entries = [...this.trailer, ...(known?.trailer ?? [])].filter(
      ([, value]) => typeof value !== 'string' || printable.test(value),
    );
    if (known !== undefined && known.details.length > 0)
      carry(() => entries.push([detailsKey, encodeDetails(known.code, known.rawMessage, known.details)]));
    const trailer = receivedMetadata(entries);
    // Text with half a surrogate pair has no form in HTTP/2.
    return { code, details: Buffer.from(details).toString(), trailer };
  }
}
