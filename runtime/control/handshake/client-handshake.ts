/**
 * The client's side of the handshake; server-handshake.ts is the server's side. A fabric that cannot connect
 * is skipped. One log line at the end names the chosen fabric and the reasons against the other fabrics. Each
 * connection of a channel has one such object, on the JS thread of the channel.
 *
 * | what this side sends | what comes           | what follows                                                            |
 * |----------------------|----------------------|-------------------------------------------------------------------------|
 * | hello                | welcome              | attach by the first fabric that the server offers, too; or no fabric     |
 * | attach               | attached             | ready, when this side's queue pair connects; else unreachable            |
 * | attach               | unreachable          | attach by the next fabric; or no fabric                                  |
 * | unreachable          |                      | attach by the next fabric; or no fabric                                  |
 * | any                  | refusal, bye, another frame, end | the attempt fails, and the channel decides what next         |
 */

import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { unavailable } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { textOf } from '../../core/foreign.ts';
import { KnownPeer } from '../../core/peer.ts';
import { type FabricName, type FabricRow, fabricRow } from '../../fabrics.ts';
import { loadNative, nativeIfLoads } from '../../native/native.ts';
import {
  controlText,
  type Frame,
  type FrameType,
  feature,
  type Hello,
  magic,
  ownFeatures,
  version,
  versionMin,
  type Welcome,
} from '../frames.ts';
import { hostIdentity } from '../host.ts';
import { Link, refused } from '../link.ts';
import { verifiedOf } from '../peer-identity.ts';
import { shareMs, sidesTowards } from '../rails.ts';
import { checkLevel, levelOf, type Protection, protectionOfClient } from '../security-level.ts';
import { ownAddress, peerEndpoint } from '../socket/address.ts';
import { type Dial, dialledPath } from '../socket/dial.ts';
import { onlyUnix } from '../socket/handoff.ts';
import { type Binding, type BoundAttempt, bindingOf, bindingOffer, checkProof } from './binding.ts';
import { FabricReasons } from './fabric-reasons.ts';
import { MemoryTerms } from './memory-terms.ts';
import { SecondSession } from './second-session.ts';
import {
  discardSession,
  type LocalSide,
  localLimits,
  type Prepared,
  prepareSession,
} from './session-setup.ts';

export interface Connection extends Prepared {
  readonly fabric: FabricName;
  readonly server: KnownPeer;
  /** The server answers pings. */
  readonly pings: boolean;
  /** The server expects an answer to its goaway. */
  readonly answersGoaway: boolean;
  /**
   * The terms of a second session in which the server makes the calls. They are undefined when the server
   * does not support second sessions.
   */
  readonly second: SecondSession | undefined;
  /** The terms of remote memory. They are undefined when the server does not support remote memory. */
  readonly memory: MemoryTerms | undefined;
}

/** The results of hello and welcome. */
interface Agreed {
  readonly welcome: Welcome;
  readonly server: KnownPeer;
  /** Undefined when the two sides have no key. */
  readonly binding: Binding | undefined;
  readonly protection: Protection;
}

export class ClientHandshake {
  readonly #link: Link;
  readonly #side: LocalSide;
  /** The dialled address, for error texts. */
  readonly #server: string;
  readonly #reasons: FabricReasons;
  /** Number of attach frames sent. */
  #attaches = 0;

  constructor(link: Link, side: LocalSide, server: string) {
    this.#link = link;
    this.#side = side;
    this.#server = server;
    this.#reasons = new FabricReasons(side);
  }

  /**
   * Resolves with a session that is connected at both ends. Rejects when the link ends. A caller cancels the
   * handshake by closing the link. `metadata` contains the client's credentials.
   */
  async run(metadata?: Uint8Array): Promise<Connection> {
    const agreed = await this.#exchangeHello(metadata);
    for (const fabric of this.#side.fabrics) {
      if (!agreed.welcome.fabrics.includes(fabric)) {
        this.#reasons.add([{ name: fabric, reason: 'the server does not offer it' }]);
        continue;
      }
      const connected = await this.#tryDevices(agreed, fabric);
      if (typeof connected !== 'string') {
        this.#reasons.chosen(this.#server, fabric, connected.context, connected.target.session);
        this.#side.onStep?.({ step: 'opened', fabric, others: this.#reasons.others(fabric) });
        return connected;
      }
      this.#reasons.failed(fabric, connected);
      this.#side.onStep?.({ step: 'unreachable', fabric, reason: connected });
    }
    throw unavailable(
      this.#reasons.tried
        ? `the sideband connection was made, but none for data: no fabric connects (${this.#reasons})`
        : `no fabric in common (${this.#reasons})`,
    );
  }

  /**
   * Resolves with the next frame, which must be of one of these types. Throws for a refusal and for any other
   * frame.
   */
  async #receive<T extends FrameType>(...types: T[]): Promise<Extract<Frame, { type: T }>> {
    const frame = await this.#link.receive();
    if ((types as FrameType[]).includes(frame.type)) return frame as Extract<Frame, { type: T }>;
    if (frame.type === 'refusal') throw refused(frame);
    if (frame.type === 'bye') throw new Error(frame.reason);
    throw new Error(`the server sent ${frame.type} instead of ${types.join(' or ')}`);
  }

  /**
   * Sends hello and reads welcome. Throws when the server agrees to more than was requested, or offers a
   * lower security level than required.
   */
  async #exchangeHello(metadata: Uint8Array | undefined): Promise<Agreed> {
    const link = this.#link;
    const side = this.#side;
    const offer = bindingOffer(link.duplex);
    const { features, secret } = offer;
    const ciphers = nativeIfLoads()?.ciphers ?? [];
    const hello: Hello = {
      type: 'hello',
      magic,
      version: versionMin,
      versionMax: version,
      features: ownFeatures | features,
      limits: localLimits(side),
      fabrics: side.fabrics.map((name) => ({
        name,
        host: hostIdentity(),
        version: fabricRow(name).version,
      })),
      identity: side.identity,
      ...(metadata !== undefined && { metadata }),
      ...(secret !== undefined && { secret }),
      ...((features & feature.bound) !== 0 && { ciphers, seals: side.require === 'sealed' }),
    };
    link.send(hello);
    const welcome = await this.#receive('welcome');
    side.onStep?.({ step: 'welcomed' });
    checkAgreed(side, welcome);
    const server = new KnownPeer(this.#server, welcome.identity, verifiedOf(link.duplex));
    const binding = bindingOf(offer, hello, welcome, link.takeOpening());
    const { cipher } = welcome;
    if (cipher !== undefined && (binding === undefined || !ciphers.includes(cipher)))
      throw new Error(`the server has chosen ${JSON.stringify(cipher)} as cipher, which was not offered`);
    const wire = cipher !== undefined ? 'sealed' : binding !== undefined ? 'bound' : 'none';
    const protection = protectionOfClient(server.security, wire);
    const missing = wire !== protection ? 'peer' : side.require;
    checkLevel('client', side.require, levelOf(server.security, protection), missing);
    this.#reasons.add(
      (welcome.without ?? []).filter(({ name }) => (side.fabrics as string[]).includes(name)),
    );
    return { welcome, server, binding, protection };
  }

  /** Tries a fabric with each device that may reach the server. The result is the same as that of `#try`. */
  async #tryDevices(agreed: Agreed, fabric: FabricName): Promise<Connection | string> {
    const reasons = new Set<string>();
    const sides = sidesTowards(this.#side, fabric, agreed.welcome.gids);
    for (const side of sides) {
      const connected = await this.#try(agreed, fabric, side, shareMs(side, fabric, sides.length));
      if (typeof connected !== 'string') return connected;
      reasons.add(connected);
    }
    return [...reasons].join('; ');
  }

  /** Resolves with a session, or with the reason why this fabric cannot be used. */
  async #try(
    { welcome, server, protection, binding }: Agreed,
    fabric: FabricName,
    side: LocalSide,
    limitMs: number | undefined,
  ): Promise<Connection | string> {
    const { cipher, limits, features } = welcome;
    const attempt = binding?.attempt(this.#attaches, fabric);
    let prepared: Prepared;
    try {
      const seal =
        cipher === undefined || attempt === undefined
          ? {}
          : { seal: { cipher, keys: attempt.sealKeys('client') } };
      const more = { protection, ...seal, ...(limitMs !== undefined && { connectTimeoutMs: limitMs }) };
      prepared = prepareSession(side, fabric, limits, limits, features, more);
    } catch (error) {
      return textOf(error);
    }
    const why = await this.#connect(prepared, attempt).catch((error: unknown) => {
      discardSession(prepared, textOf(error));
      throw error;
    });
    if (why !== '') {
      discardSession(prepared, why);
      return why;
    }
    this.#link.send({ type: 'ready' });
    return {
      ...prepared,
      fabric,
      server,
      pings: (features & feature.ping) !== 0,
      answersGoaway: (features & feature.leave) !== 0,
      second: SecondSession.of({
        side,
        fabric,
        peer: limits,
        agreed: limits,
        features,
        protection,
        cipher,
        binding,
      }),
      memory: MemoryTerms.of({ side, fabric, features, cipher, binding }),
    };
  }

  /**
   * Sends attach, reads attached, and connects this side's queue pair. Resolves with '' or with the reason of
   * the failure. The caller owns the session.
   */
  async #connect(prepared: Prepared, attempt: BoundAttempt | undefined): Promise<string> {
    const link = this.#link;
    const { context, target } = prepared;
    const { fabric } = context;
    const client = context.sessions.addressOf(target.session);
    const proof = attempt?.attach(client);
    ++this.#attaches;
    link.send({ type: 'attach', fabric, address: client, ...(proof !== undefined && { proof }) });
    const answer = await this.#receive('attached', 'unreachable');
    if (answer.type === 'unreachable') return answer.reason;
    this.#side.onStep?.({ step: 'attached', fabric });
    if (attempt !== undefined)
      checkProof(answer.proof, attempt.attached(client, answer.address), 'the queue pair of the server');
    const words = attempt?.setupWords('client', client, answer.address);
    link.awaits = `the sideband connection was made, but none for data (${fabric})`;
    const { through } = this.#side;
    const connecting = context.sessions.connect(target.session, answer.address, through, words);
    const why = await link.whileOpen(connecting);
    link.awaits = undefined;
    if (why === '') return '';
    // The server may have sent a refusal and then ended its queue pair. That frame is read first, because it
    // contains the actual reason.
    await setImmediate();
    if (link.refusal !== undefined) throw refused(link.refusal);
    link.send({ type: 'unreachable', reason: controlText(why) });
    return why;
  }
}

/** Throws when the server has agreed to more than this side has requested. */
function checkAgreed(side: LocalSide, { limits: { inflightMax, streamsMax = 0 } }: Welcome): void {
  if (inflightMax > side.inflightMax)
    throw new Error(
      `the server agreed to ${inflightMax} calls in flight, requested were ${side.inflightMax}`,
    );
  if (streamsMax > side.streamsMax)
    throw new Error(`the server agreed to ${streamsMax} open streams, requested were ${side.streamsMax}`);
}

/**
 * Returns the side with the addresses that the connection shows: the address of this end, and the address
 * for fabrics that dial.
 */
function sideOf(side: LocalSide, duplex: Duplex): LocalSide {
  const address = ownAddress(duplex);
  const path = dialledPath(duplex);
  const through = path === undefined ? peerEndpoint(duplex) : { path };
  const isHostPort = through !== undefined && path === undefined;
  const whyNot: Record<FabricRow['dials'], string> = {
    nothing: '',
    hostPort: isHostPort ? '' : 'the address is no host:port',
    path: path === undefined ? onlyUnix : '',
  };
  const without = side.fabrics
    .map((name) => ({ name, reason: whyNot[fabricRow(name).dials] }))
    .filter(({ reason }) => reason !== '');
  return {
    ...side,
    ...(address !== undefined && { address }),
    ...(through !== undefined && { through }),
    without: [...side.without, ...without],
    fabrics: side.fabrics.filter((name) => !without.some((each) => each.name === name)),
  };
}

/**
 * Resolves with the credentials for this connection. Rejects before anything is sent when the connection is
 * not private enough for credentials.
 */
async function shown(side: LocalSide, link: Link): Promise<Uint8Array | undefined> {
  if (side.credentials === undefined) return undefined;
  if (verifiedOf(link.duplex).transport === undefined && side.unsealed !== true) {
    const text =
      'credentials are not sent over a connection that others may read: use tls or a unix socket, or allow it (credentials: { unsealed: true })';
    throw new RpcError(Status.FAILED_PRECONDITION, text, { processed: 'no' });
  }
  return link.whileOpen(side.credentials());
}

export interface Opened {
  readonly link: Link;
  readonly connection: Connection;
}

/**
 * Dials and performs the handshake. Rejects with the signal's reason, an Error, when the signal is aborted.
 */
export async function openConnection(
  dial: Dial,
  side: LocalSide,
  server: string,
  signal: AbortSignal,
): Promise<Opened> {
  // Throws when the addon is missing, before anything is sent to a peer.
  if (side.fabrics.some((name) => fabricRow(name).needsAddon)) loadNative();
  const duplex = await dial(signal, () => side.onStep?.({ step: 'connected' }));
  if (verifiedOf(duplex).transport === 'tls') side.onStep?.({ step: 'secured' });
  const link = new Link(duplex);
  const giveUp = (): void => {
    const { message } = signal.reason as Error;
    link.close(link.awaits === undefined ? message : `${message}: ${link.awaits}`);
  };
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp);
  try {
    const here = sideOf(side, duplex);
    const metadata = side.credentials === undefined ? undefined : await shown(side, link);
    return { link, connection: await new ClientHandshake(link, here, server).run(metadata) };
  } catch (error) {
    link.close('the handshake failed');
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
