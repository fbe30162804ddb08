/**
 * The server's side of the handshake; client-handshake.ts is the client's side. No queue pair is created
 * before the client's hello has been checked. A server has one such object for each connection that it
 * accepts, on its JS thread.
 *
 * | state    | what comes                | what follows                                                        |
 * |----------|---------------------------|---------------------------------------------------------------------|
 * | hello    | hello                     | admitted; or refused, by `admit`                                    |
 * | admitted |                           | welcomed; or refused, when less would be promised than is required  |
 * | welcomed | attach                    | trying; or welcomed, when this side cannot connect by that fabric   |
 * | welcomed | no fabric is left         | refused, with the reason for each                                   |
 * | trying   | ready                     | ready                                                               |
 * | trying   | unreachable               | welcomed                                                            |
 * | any      | another frame, bye, end   | refused                                                             |
 */

import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { textOf } from '../../core/foreign.ts';
import { type FabricName, fabricRow } from '../../fabrics.ts';
import { nativeIfLoads } from '../../native/native.ts';
import {
  commonVersion,
  controlText,
  type Frame,
  type FrameType,
  type Hello,
  ownFeatures,
  type PeerLimits,
  type Welcome,
} from '../frames.ts';
import type { Link } from '../link.ts';
import { gidsOfBlob, moreAttaches, namedGids, sidesTowards } from '../rails.ts';
import { checkLevel, type Protection } from '../security-level.ts';
import { handoffRefusals } from '../socket/handoff.ts';
import {
  type Binding,
  type BoundAttempt,
  bindingOf,
  bindingOffer,
  bothBind,
  checkProof,
  commonCipher,
} from './binding.ts';
import { FabricReasons } from './fabric-reasons.ts';
import { MemoryTerms } from './memory-terms.ts';
import { common, withoutFor } from './offered-fabrics.ts';
import { SecondSession } from './second-session.ts';
import {
  discardSession,
  type LocalSide,
  localLimits,
  type Prepared,
  prepareSession,
} from './session-setup.ts';
import { SpeculativeSession } from './speculative-session.ts';

/**
 * Decides whether the client may have a session. Returns undefined when the client is admitted at once, or a
 * promise when the decision takes time. Throws or rejects to refuse the client.
 */
export type Admit = (hello: Hello) => Promise<void> | undefined;

/**
 * Attaches the session to its owner, before the first request can arrive. Throws to refuse the client.
 * `second` is for a session in which this side makes the calls, and `memory` is for remote memory. Each is
 * undefined when the client does not support it.
 */
export type Attach = (
  prepared: Prepared,
  hello: Hello,
  second: SecondSession | undefined,
  memory: MemoryTerms | undefined,
) => void;

function message(error: unknown): string {
  return controlText(textOf(error));
}

/**
 * Returns the text for a client with whose queue pair the server could not connect. The text does not contain
 * the reason. The address that the client has sent names files and processes of this machine, about which the
 * client must learn nothing. The log contains the reason.
 */
function notReached(fabric: FabricName): string {
  return fabricRow(fabric).reach === 'host'
    ? 'the server cannot open memory of this process: both must run as the same user, be dumpable and share a pid namespace (the log of the server says more)'
    : 'the server cannot connect to this client (the log of the server says more)';
}

/** The error of a handshake that failed for reasons that are not sent to the client in full. */
export class NotConnected extends Error {
  /** The text for the client. */
  readonly told: string;

  constructor(told: FabricReasons, all: FabricReasons) {
    super(controlText(`no fabric in common connects (${all})`));
    this.told = controlText(`no fabric in common connects (${told})`);
  }
}

/**
 * Returns whether the server has refused the client. A connection that only ends, such as that of a probe, is
 * not a refusal.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof NotConnected || (error instanceof RpcError && error.code !== Status.UNAVAILABLE);
}

/**
 * The client's data connection arrives two round trips after `attached`. The `ready` frame takes one more
 * round trip.
 */
const attachedRoundTrips = 2;

/** The result of hello and welcome. */
interface Agreed {
  readonly hello: Hello;
  readonly limits: PeerLimits;
  /** The fabrics that both sides can use, in order of preference. */
  readonly fabrics: readonly FabricName[];
  readonly protection: Protection;
  readonly cipher: string | undefined;
  /** Undefined when the two sides have no key. */
  readonly binding: Binding | undefined;
  /** Number of attaches that the client may send. */
  readonly attachesMax: number;
}

/** The functions that the owner of a handshake provides. */
export interface HandshakeOwner {
  readonly admit: Admit;
  readonly attach: Attach;
  /** True when no other handshake is in progress. */
  isOnly(): boolean;
}

type State = 'hello' | 'admitted' | 'welcomed' | 'trying' | 'ready';

export class ServerHandshake {
  readonly #link: Link;
  readonly #side: LocalSide;
  readonly #owner: HandshakeOwner;
  /**
   * The reasons why fabrics were not chosen. `#reasons` is for the log, and `#told` is the reduced form for
   * the client.
   */
  readonly #reasons: FabricReasons;
  readonly #told: FabricReasons;
  readonly #speculative = new SpeculativeSession();
  #state: State = 'hello';

  constructor(link: Link, side: LocalSide, owner: HandshakeOwner) {
    this.#link = link;
    this.#side = side;
    this.#owner = owner;
    this.#reasons = new FabricReasons(side);
    this.#told = new FabricReasons({ ...side, without: [] });
  }

  /**
   * Resolves when the client reports that its session is up. `attach` has then been called with this side's
   * session, which may already be lost again. Rejects when the link ends or the client breaks the protocol.
   * After a rejection nothing stays allocated, but a session that was attached still has to end. `peer` is
   * the name for the log.
   */
  async run(peer: string): Promise<void> {
    const hello = await this.#receive('hello');
    const admitted = this.#owner.admit(hello);
    if (admitted !== undefined) await this.#link.whileOpen(admitted);
    this.#state = 'admitted';
    const agreed = this.#welcome(hello);
    this.#state = 'welcomed';
    if (this.#owner.isOnly()) this.#prepareAhead(agreed);
    try {
      for (let number = 0; number < agreed.attachesMax; ++number) {
        const prepared = await this.#connect(agreed, number);
        if (prepared === undefined || !(await this.#isReady(prepared))) continue;
        this.#state = 'ready';
        const { context, target } = prepared;
        this.#reasons.chosen(peer, context.fabric, context, target.session);
        return;
      }
    } finally {
      this.#speculative.drop();
    }
    throw new NotConnected(this.#told, this.#reasons);
  }

  /** Resolves with the next frame, which must be of one of these types. */
  async #receive<T extends FrameType>(...types: T[]): Promise<Extract<Frame, { type: T }>> {
    const frame = await this.#link.receive();
    if ((types as FrameType[]).includes(frame.type)) return frame as Extract<Frame, { type: T }>;
    if (frame.type === 'bye') throw new Error(frame.reason);
    throw new Error(
      this.#state === 'hello'
        ? `the client began with ${frame.type} instead of hello`
        : `the client sent ${frame.type} instead of ${types[0]}`,
    );
  }

  /**
   * Chooses limits, fabrics and protection, and sends them. Throws when the security level of the session
   * would be too low.
   */
  #welcome(hello: Hello): Agreed {
    const { duplex } = this.#link;
    const side = this.#side;
    const fabrics = common(side, hello, this.#reasons, handoffRefusals(duplex));
    const without = withoutFor(side, this.#reasons);
    this.#told.add(without);
    const own = localLimits(side);
    const limits = {
      ...own,
      inflightMax: Math.min(own.inflightMax, hello.limits.inflightMax),
      streamsMax: Math.min(side.streamsMax, hello.limits.streamsMax ?? 0),
    };
    const offer = bindingOffer(duplex);
    const bound = bothBind(offer, hello, offer);
    const seals = bound && (hello.seals === true || side.require === 'sealed');
    const cipher = seals ? commonCipher(nativeIfLoads()?.ciphers ?? [], hello.ciphers ?? []) : undefined;
    const protection: Protection = cipher !== undefined ? 'sealed' : bound ? 'bound' : 'none';
    // The identity of the client has been checked before.
    if (side.require !== 'peer') checkLevel('server', side.require, protection);
    const gids = namedGids(side, fabrics);
    const welcome: Welcome = {
      type: 'welcome',
      // A common version exists, because the link refuses a hello without a common version.
      version: commonVersion(hello)!,
      features: ownFeatures | offer.features,
      limits,
      fabrics,
      without,
      identity: side.identity,
      ...(offer.secret !== undefined && { secret: offer.secret }),
      ...(cipher !== undefined && { cipher }),
      ...(gids !== undefined && { gids }),
    };
    this.#link.send(welcome);
    const binding = bindingOf(offer, hello, welcome, this.#link.takeOpening());
    const attachesMax = fabrics.length + (gids === undefined ? 0 : moreAttaches);
    return { hello, limits, fabrics, protection, cipher, binding, attachesMax };
  }

  #prepare(
    agreed: Agreed,
    fabric: FabricName,
    attempt: BoundAttempt | undefined,
    side = this.#side,
  ): Prepared {
    const { hello, limits, protection, cipher } = agreed;
    const seal =
      cipher === undefined || attempt === undefined
        ? {}
        : { seal: { cipher, keys: attempt.sealKeys('server') } };
    return prepareSession(side, fabric, hello.limits, limits, hello.features, { protection, ...seal });
  }

  #second(
    { hello, limits, protection, cipher, binding }: Agreed,
    fabric: FabricName,
    side: LocalSide,
  ): SecondSession | undefined {
    const { features } = hello;
    const peer = hello.limits;
    return SecondSession.of({
      side,
      fabric,
      peer,
      agreed: limits,
      features,
      protection,
      cipher,
      binding,
    });
  }

  #memory({ hello, cipher, binding }: Agreed, fabric: FabricName, side: LocalSide): MemoryTerms | undefined {
    return MemoryTerms.of({ side, fabric, features: hello.features, cipher, binding });
  }

  /** Creates the session that the client will probably ask for first. */
  #prepareAhead(agreed: Agreed): void {
    const { hello, fabrics, binding } = agreed;
    const likely = hello.fabrics.find(({ name }) => (fabrics as string[]).includes(name));
    this.#speculative.make(this.#side, likely?.name as FabricName | undefined, (fabric) =>
      this.#prepare(agreed, fabric, binding?.attempt(0, fabric)),
    );
  }

  /**
   * Handles an attach frame and connects this side. Resolves with undefined when this side cannot connect;
   * the client has then been notified.
   */
  async #connect(agreed: Agreed, number: number): Promise<Prepared | undefined> {
    const attach = await this.#receive('attach').catch((error: unknown) => {
      // A client that has no other device to try ends the connection here.
      if (number >= agreed.fabrics.length) throw new NotConnected(this.#told, this.#reasons);
      throw error;
    });
    const { fabric: name, address: client, proof } = attach;
    const fabric = agreed.fabrics.find((each) => each === name);
    if (fabric === undefined) throw new Error('the client chose a fabric that was not offered');
    const attempt = agreed.binding?.attempt(number, fabric);
    if (attempt !== undefined) checkProof(proof, attempt.attach(client), 'the queue pair of the client');
    const [side = this.#side] = sidesTowards(this.#side, fabric, gidsOfBlob(fabric, client));
    let prepared: Prepared;
    try {
      // The speculative session has the keys of the first attempt.
      prepared =
        (number === 0 ? this.#speculative.take(fabric) : undefined) ??
        this.#prepare(agreed, fabric, attempt, side);
    } catch (error) {
      this.#skip(fabric, message(error));
      return undefined;
    }
    const { context, target } = prepared;
    const server = context.native.sessionAddress(target.session);
    const why = context.sessions.accept(
      target.session,
      client,
      attempt?.setupWords('server', client, server),
    );
    if (why !== '') {
      discardSession(prepared, why);
      this.#skip(fabric, why, notReached(fabric));
      return undefined;
    }
    // The owner is attached first, because the client may send its first request with or before `ready`.
    try {
      const second = this.#second(agreed, fabric, side);
      this.#owner.attach(prepared, agreed.hello, second, this.#memory(agreed, fabric, side));
    } catch (error) {
      discardSession(prepared, message(error));
      throw error;
    }
    this.#state = 'trying';
    context.sessions.onceUp(target.session, () => this.#link.progressed());
    const own = attempt?.attached(client, server);
    this.#link.send({ type: 'attached', address: server, ...(own !== undefined && { proof: own }) });
    return prepared;
  }

  /**
   * Returns whether the client's queue pair has connected as well. Closes the session when the client has not
   * connected.
   */
  async #isReady({ context, target: { session } }: Prepared): Promise<boolean> {
    const { fabric } = context;
    const frame = await this.#link.receive(attachedRoundTrips);
    if (frame.type === 'ready') {
      if (!context.sessions.has(session)) throw new Error(`${fabric}: the connection was lost at once`);
      return true;
    }
    // The session ends with its client.
    if (frame.type === 'bye') throw new Error(frame.reason);
    const reason =
      frame.type === 'unreachable' ? frame.reason : `the client sent ${frame.type} instead of ready`;
    context.sessions.close(session, reason);
    if (frame.type !== 'unreachable') throw new Error(reason);
    this.#reasons.failed(fabric, reason);
    this.#told.failed(fabric, reason);
    this.#state = 'welcomed';
    return false;
  }

  #skip(fabric: FabricName, why: string, forClient = why): void {
    this.#reasons.failed(fabric, why);
    this.#told.failed(fabric, forClient);
    this.#link.send({ type: 'unreachable', reason: controlText(forClient) });
  }
}
