/**
 * The server's side of remote memory: accepts clients that ask for a queue pair. Each connection has at most
 * one such queue pair at a time. `memoryOf` makes the server accept such clients, on the server's JS thread.
 *
 * | state      | event                    | reaction                                              |
 * |------------|--------------------------|-------------------------------------------------------|
 * | idle       | memory                   | asks `authorize` → asking                             |
 * | asking     | the client may           | makes the queue pair, sends `memoryAccepted` → linked |
 * | asking     | the client may not       | sends `memoryEnd` with a status → idle                |
 * | linked     | the queue pair has ended | sends `memoryEnd` → idle                              |
 * | any        | memoryEnd of the client  | ends the queue pair → idle                            |
 */
import { controlText, type Memory, type MemoryEnd } from '../control/frames.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import { checkedOptions } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import { type RpcServer, rpcServer } from '../server/server.ts';
import { ServerCall } from '../server/server-call.ts';
import type { ConnectionMemory, ServerConnection } from '../server/server-connection.ts';
import type { Server } from '../server/server-type.ts';
import type { ExposuresOptions } from './exposures.ts';
import { refusal } from './failures.ts';
import { MemoryDefinition } from './gen/rdma_rpc/memory.rdma.ts';
import { MemoryLink } from './link.ts';
import type { Memories, MemoryOptions, PeerMemory } from './memory-type.ts';
import { memoryRules } from './options.ts';

/** The method for which `authorize` must allow a client. */
const connectMethod = MemoryDefinition.methods.connect.fullName;

class Accepting implements ConnectionMemory {
  readonly #connection: ServerConnection;
  readonly #server: RpcServer;
  readonly #options: ExposuresOptions;
  /** Number of the last memory frame. */
  #number = -1;
  #asked: Memory | undefined;
  /**
   * Number of the last queue pair that the client has ended. The server does not have to notify the client of
   * that end.
   */
  #endedThere = -1;
  #link: MemoryLink | undefined;
  #over: string | undefined;

  constructor(connection: ServerConnection, server: RpcServer, options: ExposuresOptions) {
    this.#connection = connection;
    this.#server = server;
    this.#options = options;
  }

  get memory(): PeerMemory | undefined {
    return this.#link?.isOpen === true ? this.#link : undefined;
  }
  get busy(): boolean {
    return this.#link?.closed === false && this.#link.busy;
  }

  onFrame(frame: Memory | MemoryEnd): void {
    if (frame.type === 'memory') this.#ask(frame);
    else if (frame.number === this.#number) {
      this.#asked = undefined;
      this.#endedThere = frame.number;
      this.#link?.end(frame.reason);
    }
  }

  end(reason: string): void {
    this.#over ??= reason;
    this.#asked = undefined;
    this.#link?.end(reason);
  }

  #ask(frame: Memory): void {
    const isFree = this.#asked === undefined && this.#link?.closed !== false;
    if (frame.number !== this.#number + 1 || !isFree) {
      this.#connection.close('the client sent memory out of order');
      return;
    }
    this.#number = frame.number;
    this.#asked = frame;
    const refused = (error: unknown): void => {
      if (this.#asked !== frame) return;
      this.#asked = undefined;
      const { code, rawMessage } = RpcError.from(error, Status.UNAVAILABLE);
      this.#refuse(frame.number, code, rawMessage);
    };
    try {
      const later = this.#server.authorize(this.#connection.session.peer, connectMethod);
      if (later === undefined) this.#accept(frame);
      else later.then(() => this.#accept(frame)).catch(refused);
    } catch (error) {
      refused(error);
    }
  }

  #accept(frame: Memory): void {
    if (this.#asked !== frame || this.#over !== undefined) return;
    const { terms, session, link: sideband } = this.#connection;
    if (terms === undefined) throw refusal(Status.UNIMPLEMENTED, 'the client has not offered remote memory');
    if (terms.whyNot !== '') throw refusal(Status.FAILED_PRECONDITION, terms.whyNot);
    try {
      terms.checkOffer(frame);
    } catch (error) {
      this.#connection.close(controlText(textOf(error)));
      return;
    }
    const { number } = frame;
    const options = { ...this.#options, role: 'server', quota: session.account } as const;
    const memory = new MemoryLink(terms, number, options);
    this.#asked = undefined;
    this.#link = memory;
    void memory.ended.then((reason) => {
      if (this.#over === undefined && this.#endedThere !== number)
        sideband.send({ type: 'memoryEnd', number, reason });
    });
    const { address, exposer } = memory;
    const proof = terms.accepted(number, frame.address, address);
    const joining = terms.joining(number, frame.address, address);
    if (memory.join(joining, frame.address, frame.exposer))
      sideband.send({ type: 'memoryAccepted', number, address, exposer, ...proof });
  }

  #refuse(number: number, code: number, reason: string): void {
    this.#connection.link.send({ type: 'memoryEnd', number, code, reason: controlText(reason) });
  }
}

class ServerMemories implements Memories {
  readonly #acceptings = new WeakMap<object, Accepting>();

  constructor(server: RpcServer, options: ExposuresOptions) {
    server.features.memory = (connection) => {
      const accepting = new Accepting(connection, server, options);
      this.#acceptings.set(connection.session, accepting);
      return accepting;
    };
  }

  of(context: HandlerContext): PeerMemory | undefined {
    return context instanceof ServerCall ? this.#acceptings.get(context.session)?.memory : undefined;
  }
}

const memoriesOf = new WeakMap<RpcServer, Memories>();

/**
 * Makes `server` accept remote memory of its clients (connectMemory). Without this call, a server refuses
 * such clients. The server asks its option `authorize` for the method `rdma_rpc.Memory/Connect`. Throws when
 * this function was already called for this server.
 */
export function memoryOf(
  server: Pick<Server, 'add'> & Partial<Pick<Server, 'onShutdown'>>,
  options: MemoryOptions = {},
): Memories {
  const checked = checkedOptions<ExposuresOptions>('memoryOf', options, memoryRules);
  const own = rpcServer('memoryOf', server as Server);
  if (memoriesOf.has(own)) throw new Error('memoryOf: it was called for this server before; use its result');
  own.add(MemoryDefinition, {
    connect: () => {
      throw refusal(Status.UNIMPLEMENTED, `${connectMethod}: is not called; use connectMemory(channel)`);
    },
  });
  const memories = inRoot(() => new ServerMemories(own, checked));
  memoriesOf.set(own, memories);
  return memories;
}
