/**
 * The server's side of the handshake; client-handshake.ts is the other. No queue pair is made before the
 * client's hello has been checked. One for each connection that a server accepts, on its JS thread.
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
import { loadNative } from '../../native/native.ts';
import {
  controlText,
  type Frame,
  type FrameType,
  type Hello,
  ownFeatures,
  type PeerLimits,
  version,
  type Welcome,
} from '../frames.ts';
import type { Link } from '../link.ts';
import { checkLevel, type Guard } from '../security-level.ts';
import { handoffRefusals } from '../socket/handoff.ts';
import { Ahead } from './ahead.ts';
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
import { common, withoutFor } from './offered-fabrics.ts';
import { SecondSession } from './second-session.ts';
import {
  discardSession,
  type LocalSide,
  localLimits,
  type Prepared,
  prepareSession,
} from './session-setup.ts';

/**
 * Whether the client may have a session at all; undefined when that is clear at once. Throws or rejects to
 * turn it away.
 */
export type Admit = (hello: Hello) => Promise<void> | undefined;

/**
 * Makes the session known to its owner, before the first request can come. Throws to turn it away. `second`:
 * how this side gets a session for calls of its own; undefined when the client knows of none.
 */
export type Attach = (prepared: Prepared, hello: Hello, second: SecondSession | undefined) => void;

function message(error: unknown): string {
  return controlText(textOf(error));
}

/**
 * What the client learns when the server could not connect to its queue pair, whatever the reason: that is
 * about files and processes of this machine, which the client has named. The log has it.
 */
function notReached(fabric: FabricName): string {
  return fabricRow(fabric).reach === 'host'
    ? 'the server cannot open memory of this process: both must run as the same user, be dumpable and share a pid namespace (the log of the server says more)'
    : 'the server cannot connect to this client (the log of the server says more)';
}

/** A handshake that has come to nothing, for reasons that the client is not told in full. */
export class NotConnected extends Error {
  /** What the client is told. */
  readonly told: string;

  constructor(told: FabricReasons, all: FabricReasons) {
    super(controlText(`no fabric in common connects (${all})`));
    this.told = controlText(`no fabric in common connects (${told})`);
  }
}

/**
 * Whether the server has refused the client. A connection that only ends, as one of a probe does, is no
 * refusal.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof NotConnected || (error instanceof RpcError && error.code !== Status.UNAVAILABLE);
}

/**
 * Between `attached` and what the server sees of the connection for data, which the client makes then, are
 * two round trips; `ready` is one more.
 */
const attachedRoundTrips = 2;

/** What hello and welcome have come to. */
interface Agreed {
  readonly hello: Hello;
  readonly limits: PeerLimits;
  /** In the order in which they are to be tried. */
  readonly fabrics: readonly FabricName[];
  readonly guard: Guard;
  readonly cipher: string | undefined;
  /** Undefined where the two sides have no key. */
  readonly binding: Binding | undefined;
}

/** What the owner of a handshake does in it. */
export interface HandshakeOwner {
  readonly admit: Admit;
  readonly attach: Attach;
  /** No other handshake is under way. */
  isOnly(): boolean;
}

type State = 'hello' | 'admitted' | 'welcomed' | 'trying' | 'ready';

export class ServerHandshake {
  readonly #link: Link;
  readonly #side: LocalSide;
  readonly #owner: HandshakeOwner;
  /** Why each fabric was not chosen: for the log, and what the client may know of it. */
  readonly #reasons: FabricReasons;
  readonly #told: FabricReasons;
  readonly #ahead = new Ahead();
  #state: State = 'hello';

  constructor(link: Link, side: LocalSide, owner: HandshakeOwner) {
    this.#link = link;
    this.#side = side;
    this.#owner = owner;
    this.#reasons = new FabricReasons(side);
    this.#told = new FabricReasons({ ...side, without: [] });
  }

  /**
   * Resolves when the client says that its session is up: `attach` has been called with this side's, which
   * may have been lost again. Rejects when the link ends or the client breaks the rules; nothing is left
   * behind then, except that an attached session still goes down by itself. `peer` is for the log.
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
      for (let number = 0; number < agreed.fabrics.length; ++number) {
        const prepared = await this.#connect(agreed, number);
        if (prepared === undefined || !(await this.#isReady(prepared))) continue;
        this.#state = 'ready';
        const { context, target } = prepared;
        this.#reasons.chosen(peer, context.fabric, context, target.session);
        return;
      }
    } finally {
      this.#ahead.drop();
    }
    throw new NotConnected(this.#told, this.#reasons);
  }

  /** The next frame, which must be of one of these types. */
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

  /** Chooses limits, fabrics and guard, and sends them. Throws when the session would promise too little. */
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
    const cipher = seals ? commonCipher(loadNative().ciphers, hello.ciphers ?? []) : undefined;
    const guard: Guard = cipher !== undefined ? 'sealed' : bound ? 'bound' : 'none';
    // Who the client is has been looked at before.
    if (side.require !== 'peer') checkLevel('server', side.require, guard);
    const welcome: Welcome = {
      type: 'welcome',
      version,
      features: ownFeatures | offer.features,
      limits,
      fabrics,
      without,
      identity: side.identity,
      ...(offer.secret !== undefined && { secret: offer.secret }),
      ...(cipher !== undefined && { cipher }),
    };
    this.#link.send(welcome);
    const binding = bindingOf(offer, hello, welcome, this.#link.takeOpening());
    return { hello, limits, fabrics, guard, cipher, binding };
  }

  #prepare(agreed: Agreed, fabric: FabricName, attempt: BoundAttempt | undefined): Prepared {
    const { hello, limits, guard, cipher } = agreed;
    const seal =
      cipher === undefined || attempt === undefined
        ? {}
        : { seal: { cipher, keys: attempt.sealKeys('server') } };
    return prepareSession(this.#side, fabric, hello.limits, limits, hello.features, { guard, ...seal });
  }

  #second({ hello, limits, guard, cipher, binding }: Agreed, fabric: FabricName): SecondSession | undefined {
    const { features } = hello;
    const peer = hello.limits;
    return SecondSession.of({
      side: this.#side,
      fabric,
      peer,
      agreed: limits,
      features,
      guard,
      cipher,
      binding,
    });
  }

  /** The session that the client is likely to ask for first. */
  #prepareAhead(agreed: Agreed): void {
    const { hello, fabrics, binding } = agreed;
    const likely = hello.fabrics.find(({ name }) => (fabrics as string[]).includes(name));
    this.#ahead.make(this.#side, likely?.name as FabricName | undefined, (fabric) =>
      this.#prepare(agreed, fabric, binding?.attempt(0, fabric)),
    );
  }

  /** Takes an attach and connects this side. Undefined when it cannot; then the client has been told so. */
  async #connect(agreed: Agreed, number: number): Promise<Prepared | undefined> {
    const { fabric: name, address: client, proof } = await this.#receive('attach');
    const fabric = agreed.fabrics.find((each) => each === name);
    if (fabric === undefined) throw new Error('the client chose a fabric that was not offered');
    const attempt = agreed.binding?.attempt(number, fabric);
    if (attempt !== undefined) checkProof(proof, attempt.attach(client), 'the queue pair of the client');
    let prepared: Prepared;
    try {
      // The one made ahead has the keys of the first attempt.
      prepared =
        (number === 0 ? this.#ahead.take(fabric) : undefined) ?? this.#prepare(agreed, fabric, attempt);
    } catch (error) {
      this.#skip(fabric, message(error));
      return undefined;
    }
    const { context, target } = prepared;
    const server = context.native.sessionAddress(target.session);
    const why = context.sessions.accept(
      target.session,
      client,
      attempt?.firstWords('server', client, server),
    );
    if (why !== '') {
      discardSession(prepared, why);
      this.#skip(fabric, why, notReached(fabric));
      return undefined;
    }
    // The client may send its first request with or before `ready`: the owner has to be there first.
    try {
      this.#owner.attach(prepared, agreed.hello, this.#second(agreed, fabric));
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

  /** Whether the client has connected, too. The session is closed when it has not. */
  async #isReady({ context, target: { session } }: Prepared): Promise<boolean> {
    const { fabric } = context;
    const frame = await this.#link.receive(attachedRoundTrips);
    if (frame.type === 'ready') {
      if (!context.sessions.has(session)) throw new Error(`${fabric}: the connection was lost at once`);
      return true;
    }
    // The session goes down with its client.
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
