/**
 * Makes the handler's context for a call over real gRPC, and converts the metadata and errors that the
 * handler returns. The adapters of grpc-js and nice-grpc use this file; they describe their call as a
 * `GrpcCall`.
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

/** A call in a gRPC server. */
export interface GrpcCall {
  readonly peer: string;
  /** Returns the received metadata, by key. */
  metadata(): Iterable<readonly [string, Iterable<MetadataValue>]>;
  /**
   * Returns the time left in ms, at least 0. Returns undefined when the call has no limit, or when the server
   * does not know the limit.
   */
  timeoutMs(): number | undefined;
  sendHeader(header: Metadata): void;
}

/** The end of a failed call. */
export interface GrpcFailure {
  readonly code: number;
  readonly details: string;
  readonly trailer: Metadata;
}

/** Matches a text that HTTP/2 can carry. For any other text grpc-js throws an error that is not caught. */
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
  /** Whether the header may be sent before the response. */
  readonly #early: boolean;
  #headerSent = false;
  #done = false;

  constructor({ fullName, requestStream, responseStream }: MethodDefinition, call: GrpcCall) {
    this.method = fullName;
    this.#call = call;
    this.#early = requestStream || responseStream;
  }

  /**
   * The peer has no verified identity here, because only gRPC's own interceptors know verified identities.
   */
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

  /** The reason why the answer is no longer needed, or undefined. */
  get cancelled(): RpcError | undefined {
    return this.#cancelled;
  }

  timeoutMs(): number | undefined {
    return this.#call.timeoutMs();
  }

  /**
   * Sends the header now, once. Without this call, the header is sent with the first message or at the end.
   * The header of a unary method is always sent with the response, as in all servers.
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
   * Runs when the answer is no longer needed. gRPC's servers also report a cancellation for calls that ended
   * normally; the handler must not see such a cancellation.
   */
  cancel(): void {
    if (this.#done || this.#cancelled !== undefined) return;
    this.#cancelled =
      this.timeoutMs() === 0
        ? deadlinePassed(this.method)
        : new RpcError(Status.CANCELLED, `${this.method}: cancelled by the client`);
    this.#controller?.abort(this.#cancelled);
  }

  /**
   * Yields the requests for the handler. Node's HTTP/2 clients end a stream before they reset it. Therefore
   * the end of cancelled requests looks like a normal end. The reset arrives before the next event-loop
   * iteration.
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

  /** Runs when the handler has returned. Returns the handler's trailer. */
  finish(): Metadata {
    this.#sendHeader();
    checkCarried(this.method, 'trailer', this.trailer);
    this.#done = true;
    return this.trailer;
  }

  /** Runs when the handler has thrown `error`. */
  fail(error: unknown): GrpcFailure {
    this.#done = true;
    const known = error instanceof RpcError ? error : undefined;
    const details = known?.rawMessage ?? handlerFailed(this.method);
    const code = known?.code ?? Status.INTERNAL;
    // Metadata that cannot be sent is left out, because the error is more important.
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
    // Text with half a surrogate pair cannot be sent in HTTP/2.
    return { code, details: Buffer.from(details).toString(), trailer };
  }
}
