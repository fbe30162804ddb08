/**
 * Opens a server and a client in this process, on a simulated fabric that does nothing by itself. Each of its
 * events (a message that arrives, a READ, a completion) is executed when the test says so, in an order that
 * follows from a seed. Only one such pair can exist at a time. The pair can also run over TCP, where an
 * event-loop iteration is a step, and the kernel decides what happens in it.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import {
  acquireContext,
  contextStats,
  releaseContext,
  setContextOptions,
} from '../../runtime/boundary/contexts.ts';
import type { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { ClientChannel } from '../../runtime/client/channel.ts';
import type { Stats } from '../../runtime/native/native.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { keptBy } from '../runtime/kept.ts';
import { follow } from './clock.ts';

/**
 * These limits are so small that messages of streams wait for their readers, and parts wait for memory. Unary
 * calls never fill them.
 */
const small = {
  slotBytes: 1024,
  arenaBytes: 1024 * 1024,
  sendSlots: 64,
  mrCacheEntriesMax: 8,
  mrCacheBytes: 128 * 1024,
};
/** A call that has not ended after this number of iterations will never end. */
const turnsMax = 20_000;
/** Over TCP iterations are short, and some events take time. */
const realMsMax = 30_000;
/** This is twice the time for which a cancelled call waits, at 5 ms for each step without an event. */
const restSteps = 20;

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export type Fabric = 'sim' | 'tcp';

export interface Limits {
  readonly inflightMax: number;
  readonly streamsMax: number;
}

export class SteppedWorld {
  readonly channel: ClientChannel;
  readonly #fabric: Fabric;
  readonly #limits: Limits;
  readonly #register: (server: RpcServer) => void;
  #server: RpcServer;
  /** For tcp, the address at which the server listens. */
  #address: Promise<string> | undefined;
  /** The client's ends of all connections. */
  readonly #ends: Duplex[] = [];
  /** Servers that are shutting down. */
  readonly #going: Promise<void>[] = [];
  readonly #context: FabricContext;
  /** Sessions that the test has ended, and functions that run around the events of their end. */
  #losing = new Set<number>();
  #around: () => void = () => undefined;
  /** Numbers of the sessions that were made. */
  readonly #sessions: number[] = [];

  private constructor(fabric: Fabric, limits: Limits, register: (server: RpcServer) => void) {
    this.#fabric = fabric;
    this.#limits = limits;
    this.#register = register;
    this.#server = this.#serve();
    const dial = (): Promise<Duplex> =>
      this.#address === undefined ? this.#pair() : this.#dial(this.#address);
    this.channel = new ClientChannel({ address: 'stepped', dial, fabrics: [fabric] }, limits);
    // The context is kept open. Otherwise each connection that follows a lost connection would be in a
    // simulated world of its own.
    const context = acquireContext({ fabric });
    this.#context = context;
    const { clock } = context.native;
    Object.defineProperty(context.native, 'clock', { value: follow(clock) });
    // This is the last function that is called before a session is notified of its end.
    const sessionError = context.native.sessionError.bind(context.native);
    const asked = (session: number): string => {
      if (this.#losing.has(session)) this.#around();
      return sessionError(session);
    };
    Object.defineProperty(context.native, 'sessionError', { value: asked, configurable: true });
    const { attach } = context.sessions;
    context.sessions.attach = (owner) => {
      attach.call(context.sessions, owner);
      const { onDown, onFailed, target } = owner;
      owner.onFailed = (at) => {
        if (this.#losing.has(target.session)) this.#around();
        onFailed.call(owner, at);
      };
      owner.onDown = (reason) => {
        onDown.call(owner, reason);
        if (this.#losing.delete(target.session)) this.#around();
      };
    };
    const { create } = context.sessions;
    context.sessions.create = (options) => {
      const number = create.call(context.sessions, options);
      this.#sessions.push(number);
      return number;
    };
  }

  static async open(
    seed: number,
    limits: Limits,
    register: (server: RpcServer) => void,
    fabric: Fabric = 'sim',
  ): Promise<SteppedWorld> {
    await closed();
    setContextOptions({ ...small, ...(fabric === 'sim' && { seed, stepped: true }) });
    const world = new SteppedWorld(fabric, limits, register);
    const ready = world.channel.ready();
    let up = false;
    void ready.finally(() => {
      up = true;
    });
    await world.run(() => up);
    await ready;
    return world;
  }

  #pair(): Promise<Duplex> {
    const [near, far] = duplexPair();
    this.#ends.push(near);
    this.#server.accept(far, 'stepped');
    return Promise.resolve(near);
  }

  async #dial(address: Promise<string>): Promise<Duplex> {
    const { hostname, port } = new URL(`tcp://${await address}`);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    this.#ends.push(socket);
    return socket;
  }

  /**
   * Returns whether an event was executed. The result is always false on TCP, because the kernel decides
   * about its events.
   */
  #step(): boolean {
    return this.#fabric === 'sim' && this.#context.native.stepSim();
  }

  /**
   * Executes events until `done`. `each` is called before every event, and whenever no event is left.
   */
  async run(done: () => boolean, each: () => void = () => undefined): Promise<void> {
    const endMs = Date.now() + (this.#fabric === 'tcp' ? realMsMax : 0);
    for (let turns = 0; !done(); ++turns) {
      if (turns > turnsMax && Date.now() > endMs) throw new Error('it never comes to an end');
      each();
      this.#step();
      await turn();
    }
  }

  /** Runs until no event is left. */
  async rest(): Promise<void> {
    // Memory that a cancelled call may still use is released when its server reports the end.
    if (this.#fabric === 'tcp') {
      for (const endMs = Date.now() + realMsMax; this.books().length > 0 && Date.now() < endMs; )
        await turn();
      return;
    }
    for (let still = 0; still < restSteps; ++still) {
      if (this.#step()) still = 0;
      await turn();
    }
  }

  /**
   * Ends every connection on the native side. `around` runs before and after each event of an end, as code of
   * the application may.
   */
  lose(around: () => void = () => undefined): void {
    this.#around = around;
    this.#losing = new Set(this.#sessions.splice(0));
    for (const session of this.#losing) this.#context.native.closeSession(session, 'lost by the test');
  }

  /**
   * Replaces the server by another one, and lets the calls of the first finish. With `deaf` its notice is not
   * delivered before `hear()`, so that calls continue to arrive at it.
   */
  replace(deaf = false): void {
    if (deaf) for (const end of this.#ends) end.pause();
    const old = this.#server;
    this.#server = this.#serve();
    this.#going.push(old.shutdown({ graceMs: 86_400_000 }));
  }

  /** Delivers the notices of servers from now on. */
  hear(): void {
    for (const end of this.#ends) end.resume();
  }

  #serve(): RpcServer {
    const server = new RpcServer(this.#limits, [this.#fabric]);
    this.#register(server);
    if (this.#fabric === 'tcp') this.#address = server.listen('127.0.0.1:0');
    return server;
  }

  /** Returns the resources that have not been released. The caller has released its leases. */
  books(): string[] {
    const wrong: string[] = [];
    const { protocolErrors } = this.stats;
    for (const [what, count] of Object.entries(keptBy(this.#context)))
      if (count !== 0) wrong.push(`${what}: ${count}`);
    const { registered } = this.#context.outgoing.bulk.kept;
    if (registered.length > small.mrCacheEntriesMax)
      wrong.push(`${registered.length} buffers are registered`);
    if (protocolErrors !== 0) wrong.push(`${protocolErrors} protocol errors`);
    const inFlight = this.channel.session?.callsInFlight ?? 0;
    if (inFlight !== 0) wrong.push(`${inFlight} calls in flight`);
    return wrong;
  }

  get stats(): Stats {
    return contextStats(this.#fabric);
  }

  async close(): Promise<void> {
    let over = false;
    const close = this.channel
      .close()
      .then(() => Promise.all([...this.#going, this.#server.shutdown({ graceMs: 0 })]))
      .then(() => {
        over = true;
      });
    await this.run(() => over);
    await close;
    releaseContext(this.#context);
    await closed();
  }
}

/** Resolves when the world's context has closed, so that the next world can have a new one. */
async function closed(): Promise<void> {
  for (let turns = 0; ; ++turns) {
    try {
      return setContextOptions({});
    } catch (error) {
      if (turns > 10_000) throw error;
      await turn();
    }
  }
}
