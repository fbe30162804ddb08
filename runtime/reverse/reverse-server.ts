/**
 * A client that serves calls of its server: opens the stream that they come by, runs their handlers, and
 * opens it anew when the connection was lost. Made by `serveReverse`, on the channel's JS thread.
 */

import type { Channel } from '../client/channel-type.ts';
import { createClient } from '../client/client.ts';
import { clockMs } from '../clock.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { failure, tooLarge } from '../core/errors/failure.ts';
import { abortCode, RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import { leaseOf } from '../core/lease.ts';
import { encodeResponseMetadata, metadataFault } from '../core/metadata-wire.ts';
import { checkNames } from '../core/options.ts';
import { KnownPeer } from '../core/peer.ts';
import { inRoot } from '../core/scopes.ts';
import type { Client, Handlers } from '../core/types.ts';
import { HandlerErrors } from '../core/warnings.ts';
import { Reason } from '../native/native.ts';
import {
  exhausted,
  givenUp,
  handlerFailed,
  malformedMetadata,
  type Refusal,
  undecodable,
  unencodable,
  unknownMethod,
} from '../server/call-faults.ts';
import { HandlerTable } from '../server/handlers.ts';
import { type CallOwner, ServerCall } from '../server/server-call.ts';
import type { ServerMethod } from '../server/server-method.ts';
import { onRefused, type Refusable, type Refused } from '../stream/refused.ts';
import { type AnswerInit, type Call, ReverseDefinition } from './gen/reverse.rdma.ts';
import { reverseCalls, reverseQueueBytes, reverseRetryMs, reverseTakenMs } from './limits.ts';
import { MessageQueue } from './message-queue.ts';
import type { ReverseOptions, ReverseServer } from './reverse-type.ts';

const nothing = new Uint8Array(0);

/** One stream: its handlers that run, and its answers. */
class Serving implements CallOwner {
  readonly peer: KnownPeer;
  readonly answers = new MessageQueue<AnswerInit & Refusable>();
  readonly running = new Map<number, ServerCall>();

  constructor(peer: KnownPeer) {
    this.peer = peer;
  }

  /** What the handler gives now finds its call gone. */
  onLate({ handle: number, definition }: ServerCall, { code, rawMessage }: RpcError): void {
    if (definition.oneWay) return;
    this.running.delete(number);
    this.answers.push({ number, status: code, text: rawMessage });
  }

  /** The connection or the stream is over. */
  end(): void {
    this.answers.end();
    for (const call of this.running.values()) {
      call.abort(new RpcError(Status.CANCELLED, `${call.method}: the connection was lost`));
    }
  }
}

/** By channel, the one that serves on it. */
const servers = new WeakMap<Channel, RpcReverseServer>();

class RpcReverseServer implements ReverseServer {
  readonly #channel: Channel;
  readonly #client: Client<typeof ReverseDefinition>;
  readonly #handlers = new HandlerTable();
  readonly #errors: HandlerErrors;
  readonly #interceptors: readonly Interceptor[];
  readonly #peer: KnownPeer;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #ready: (() => void) | undefined;
  #failed: ((error: unknown) => void) | undefined;
  readonly ready: Promise<void>;

  constructor(channel: Channel, options: ReverseOptions) {
    checkNames('serveReverse', options, ['onHandlerError', 'interceptors']);
    this.#interceptors = checkedInterceptors('serveReverse', options.interceptors);
    this.#channel = channel;
    this.#client = createClient(ReverseDefinition, channel);
    this.#errors = new HandlerErrors(options.onHandlerError);
    this.#peer = new KnownPeer(channel.address);
    this.ready = new Promise((resolve, reject) => {
      this.#ready = resolve;
      this.#failed = reject;
    });
    // Whoever does not ask need not hear of it as an unhandled rejection.
    this.ready.catch(() => undefined);
    if (servers.has(channel)) {
      const text =
        'serveReverse: this channel serves already: add services to what the first call gave, or close that before';
      this.#failed?.(new RpcError(Status.ALREADY_EXISTS, text, { processed: 'no' }));
      this.#ended = Promise.resolve();
      return;
    }
    servers.set(channel, this);
    // In the root: it serves whoever calls, not only whoever has called this.
    this.#ended = inRoot(this.#run, this);
  }

  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this {
    this.#handlers.add(definition, handlers, this.#interceptors);
    return this;
  }

  close(): Promise<void> {
    this.#stop.abort();
    this.#leave();
    this.#failed?.(new RpcError(Status.CANCELLED, 'serveReverse: closed', { processed: 'no' }));
    return this.#ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Another may serve on the channel. */
  #leave(): void {
    if (servers.get(this.#channel) === this) servers.delete(this.#channel);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let takenSinceMs = Number.POSITIVE_INFINITY;
    while (!signal.aborted) {
      const serving = new Serving(this.#peer);
      try {
        const calls = this.#client.serve(serving.answers, { signal, waitForReady: true });
        for await (const call of calls) {
          takenSinceMs = Number.POSITIVE_INFINITY;
          this.#onCall(serving, call);
          // What it held has been decoded, which copies.
          leaseOf(call)?.release();
          // A server that reads no answers gets no more of them.
          const { size, bytes } = serving.answers;
          if (size >= reverseCalls || bytes >= reverseQueueBytes) await serving.answers.drained();
        }
      } catch (error) {
        const code = error instanceof RpcError ? error.code : undefined;
        if (code === Status.ALREADY_EXISTS) takenSinceMs = Math.min(takenSinceMs, clockMs());
        else takenSinceMs = Number.POSITIVE_INFINITY;
        const taken = clockMs() - takenSinceMs > reverseTakenMs;
        if (code === Status.UNIMPLEMENTED || taken || this.#channel.state === 'closed') {
          this.#failed?.(error);
          this.#leave();
          return;
        }
      } finally {
        serving.end();
      }
      await this.#pause();
    }
  }

  /** Before the next attempt. */
  #pause(): Promise<void> {
    const { signal } = this.#stop;
    return new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, reverseRetryMs);
      signal.addEventListener('abort', done);
    });
  }

  #onCall(serving: Serving, call: Call): void {
    if (call.number === 0) {
      this.#ready?.();
    } else if (call.cancel !== 0) {
      const running = serving.running.get(call.number);
      serving.running.delete(call.number);
      running?.abort(givenUp(running.method, call.cancel, 'server'));
    } else {
      this.#start(serving, call);
    }
  }

  #start(serving: Serving, { number, method: id, timeoutUs, metadata, message }: Call): void {
    const method = this.#handlers.find(id | 0);
    const refuse = (refusal: Refusal): void => serving.answers.push({ number, ...refusal, notRun: true });
    if (method === undefined) {
      refuse(unknownMethod(this.#handlers.missing(id | 0, false)));
      return;
    }
    const { path } = method;
    if (serving.running.size >= reverseCalls || serving.running.has(number)) {
      refuse(exhausted(path, `${reverseCalls} calls run already, or one has this number`));
      return;
    }
    const why = metadataFault(metadata, 0, metadata.byteLength);
    if (why !== '') {
      refuse(malformedMetadata(path, why));
      return;
    }
    let request: unknown;
    try {
      request = method.requestType.decode(message);
    } catch (error) {
      refuse(undecodable(path, error));
      return;
    }
    const deadlineMs = timeoutUs === 0n ? 0 : clockMs() + Number(timeoutUs) / 1000;
    const call = new ServerCall(serving, number, method, deadlineMs, metadata.slice());
    serving.running.set(number, call);
    void this.#handle(serving, call, method, request);
  }

  /** The stream cannot carry the answer: the caller learns why. */
  #onRefused(serving: Serving, { number = 0 }: AnswerInit, path: string, why: Refused): void {
    const { reason, bytes, maxBytes } = why;
    const error =
      reason === Reason.tooLarge ? tooLarge(path, bytes, maxBytes, 'server') : failure(reason, path, 'yes');
    serving.answers.push({ number, status: error.code, text: error.rawMessage });
  }

  async #handle(serving: Serving, call: ServerCall, method: ServerMethod, request: unknown): Promise<void> {
    const number = call.handle;
    let answer: AnswerInit;
    let failed = handlerFailed;
    try {
      if (method.oneWay) serving.answers.push({ number });
      const response = await inRoot(method.handler, method.self, request, call);
      failed = unencodable;
      if (method.check.left > 0 && !method.oneWay) method.check.look(response);
      const metadata = encodeResponseMetadata(call.givenHeader, call.givenTrailer) ?? nothing;
      const message = method.oneWay ? nothing : method.responseType.encode(response);
      answer = { number, metadata, message };
    } catch (error) {
      const known = error instanceof RpcError ? error : undefined;
      const meant = call.aborted !== undefined && abortCode(error) !== undefined;
      if (known === undefined ? !meant : method.oneWay) this.#errors.report(error, call.method);
      const text = known?.rawMessage ?? failed(call.method);
      answer = {
        number,
        status: known?.code ?? Status.INTERNAL,
        text,
        metadata: this.#errorMetadata(call, known),
      };
    }
    call.finish();
    // Given up meanwhile: the number may be another call's by now.
    if (serving.running.get(number) !== call) return;
    serving.running.delete(number);
    if (method.oneWay) return;
    const given = answer;
    const path = call.method;
    serving.answers.push({ ...given, [onRefused]: (why) => this.#onRefused(serving, given, path, why) });
  }

  #errorMetadata(call: ServerCall, error: RpcError | undefined): Uint8Array {
    try {
      return encodeResponseMetadata(call.givenHeader, error?.trailer ?? call.givenTrailer) ?? nothing;
    } catch {
      // Too large: the status matters more.
      return nothing;
    }
  }
}

/**
 * Serves calls that the server of `channel` makes to this client, over the channel's connection, until
 * `close()`. The server must have `peersOf(server)`. Like a server that listens, it keeps the process alive.
 * One serves on a channel: `ready` of a second rejects with ALREADY_EXISTS.
 */
export function serveReverse(channel: Channel, options: ReverseOptions = {}): ReverseServer {
  return new RpcReverseServer(channel, options);
}
