/**
 * The client's side of remote memory: asks the server for a queue pair, over the sideband connection of the
 * channel. It runs on the JS thread of the channel.
 */
import { clientChannel } from '../client/channel.ts';
import type { Channel } from '../client/channel-type.ts';
import type { ClientLink, ConnectionMemory } from '../client/connections/client-link.ts';
import { controlText, type MemoryAccepted, type MemoryEnd } from '../control/frames.ts';
import type { MemoryTerms } from '../control/handshake/memory-terms.ts';
import type { RpcError } from '../core/errors/rpc-error.ts';
import { errorCode, Status } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import { checkedOptions } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import type { ExposuresOptions } from './exposures.ts';
import { refusal } from './failures.ts';
import { MemoryLink } from './link.ts';
import type { MemoryOptions, PeerMemory } from './memory-type.ts';
import { memoryRules } from './options.ts';

/** The remote memory of one connection of a channel, which has one queue pair at a time. */
class Connecting implements ConnectionMemory {
  readonly #link: ClientLink;
  readonly #terms: MemoryTerms;
  #number = -1;
  #memory: MemoryLink | undefined;
  /**
   * Number of the last queue pair that the server has ended. The client does not have to notify the server of
   * that end.
   */
  #endedThere = -1;
  /** The error with which the server has refused the last queue pair. */
  #refused: RpcError | undefined;

  constructor(link: ClientLink, terms: MemoryTerms) {
    this.#link = link;
    this.#terms = terms;
  }

  async connect(options: ExposuresOptions): Promise<PeerMemory> {
    const memory = this.#current ?? this.#begin(options);
    try {
      await memory.ready;
    } catch (error) {
      throw this.#refused ?? error;
    }
    return memory;
  }

  onFrame(frame: MemoryAccepted | MemoryEnd): void {
    const memory = this.#current;
    // The frame belongs to an earlier queue pair and has crossed the end of that queue pair.
    if (memory === undefined || frame.number !== this.#number) return;
    if (frame.type === 'memoryAccepted') {
      try {
        this.#terms.checkAnswer(frame, memory.address);
      } catch (error) {
        this.#link.close(controlText(textOf(error)));
        return;
      }
      memory.join(
        this.#terms.joining(this.#number, memory.address, frame.address),
        frame.address,
        frame.exposer,
      );
    } else {
      const { code, reason } = frame;
      this.#endedThere = frame.number;
      if (code !== undefined) this.#refused = refusal(errorCode(code), `connectMemory: ${reason}`);
      memory.end(reason);
    }
  }

  end(reason: string): void {
    this.#memory?.end(reason);
  }

  get #current(): MemoryLink | undefined {
    return this.#memory?.closed === false ? this.#memory : undefined;
  }

  #begin(options: ExposuresOptions): MemoryLink {
    const number = ++this.#number;
    let memory: MemoryLink;
    try {
      memory = new MemoryLink(this.#terms, number, { ...options, role: 'client' });
    } catch (error) {
      --this.#number;
      throw refusal(Status.UNAVAILABLE, `connectMemory: ${textOf(error)}`, error);
    }
    this.#memory = memory;
    this.#refused = undefined;
    const { address, exposer } = memory;
    this.#link.send({ type: 'memory', number, address, exposer, ...this.#terms.offered(number, address) });
    void memory.ended.then((reason) => {
      if (this.#link.ended === undefined && this.#endedThere !== number)
        this.#link.send({ type: 'memoryEnd', number, reason });
    });
    return memory;
  }
}

const connectings = new WeakMap<ClientLink, Connecting>();

/**
 * Connects remote memory between this client and the server of `channel`, which must use `memoryOf(server)`.
 * It connects the channel first. The channel must lead to one address. If the channel's connection already
 * has remote memory, that memory is returned. Remote memory ends with the connection, and must be connected
 * again after that. Rejects with UNIMPLEMENTED when the server has no remote memory, with PERMISSION_DENIED
 * when `authorize` forbids it, and with FAILED_PRECONDITION when the session is sealed or its fabric has no
 * queue pairs for remote memory.
 */
export async function connectMemory(channel: Channel, options: MemoryOptions = {}): Promise<PeerMemory> {
  const checked = checkedOptions<ExposuresOptions>('connectMemory', options, memoryRules);
  const own = clientChannel('connectMemory', channel);
  await own.ready();
  if (own.addresses.length > 1) {
    const text =
      'connectMemory: this channel has several servers, and memory belongs to one; create a channel for each';
    throw refusal(Status.FAILED_PRECONDITION, text);
  }
  const link = own.link;
  if (link === undefined) throw refusal(Status.UNAVAILABLE, `connectMemory: ${own.address}: not connected`);
  const { memory: terms, server } = link.connection;
  if (terms === undefined) {
    const text = `connectMemory: ${server.address}: this server is of a release without remote memory; use the same rdma-rpc release on both sides`;
    throw refusal(Status.UNIMPLEMENTED, text);
  }
  if (terms.whyNot !== '') throw refusal(Status.FAILED_PRECONDITION, `connectMemory: ${terms.whyNot}`);
  let connecting = connectings.get(link);
  if (connecting === undefined) {
    connecting = new Connecting(link, terms);
    connectings.set(link, connecting);
    link.memory = connecting;
  }
  const begun = connecting;
  // Connects in the root context, because the connection serves all callers, not only this caller.
  return inRoot(() => begun.connect(checked));
}
