/**
 * The client's side of the handshake: hello, welcome, then for each fabric in turn attach, attached, ready. A fabric that cannot
 * connect is skipped; one log line in the end says which was chosen, and why not the others. Called by a channel.
 */

import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { unavailable } from '../core/errors/failure.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import { KnownPeer } from '../core/peer.ts';
import { type FabricName, type FabricRow, fabricRow } from '../fabrics.ts';
import { loadNative } from '../native.ts';
import { ownAddress, peerPlace } from './address.ts';
import { type Binding, bindingOf, bindingOffer, checkProof } from './binding.ts';
import { type Dial, dialledPath } from './dial.ts';
import { FabricReasons } from './fabric-reasons.ts';
import {
  controlText,
  type Frame,
  type FrameType,
  feature,
  type Hello,
  magic,
  ownFeatures,
  version,
  type Welcome,
} from './frames.ts';
import { onlyUnix } from './handoff.ts';
import { hostIdentity } from './host.ts';
import { Link, refused } from './link.ts';
import { verifiedOf } from './peer-identity.ts';
import { checkLevel, type Guard, guardOfClient, levelOf } from './security-level.ts';
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
  /** The server wants an answer to its goaway. */
  readonly answersGoaway: boolean;
}

/** The next frame, which must be of one of these types. A refusal, or anything else, throws. */
async function expect<T extends FrameType>(link: Link, ...types: T[]): Promise<Extract<Frame, { type: T }>> {
  const frame = await link.receive();
  if ((types as FrameType[]).includes(frame.type)) return frame as Extract<Frame, { type: T }>;
  if (frame.type === 'refusal') throw refused(frame);
  if (frame.type === 'bye') throw new Error(frame.reason);
  throw new Error(`the server sent ${frame.type} instead of ${types.join(' or ')}`);
}

/**
 * Resolves with a session that is connected at both ends. Rejects when the link ends, which is also how a caller gives up. `server` is for
 * the log.
 */
export async function connectOver(
  link: Link,
  side: LocalSide,
  server: string,
  metadata?: Uint8Array,
): Promise<Connection> {
  const offer = bindingOffer(link.duplex);
  const { features, secret } = offer;
  const { ciphers } = loadNative();
  const hello: Hello = {
    type: 'hello',
    magic,
    version,
    features: ownFeatures | features,
    limits: localLimits(side),
    fabrics: side.fabrics.map((name) => ({ name, host: hostIdentity() })),
    identity: side.identity,
    ...(metadata !== undefined && { metadata }),
    ...(secret !== undefined && { secret }),
    ...((features & feature.bound) !== 0 && { ciphers, seals: side.require === 'sealed' }),
  };
  link.send(hello);
  const welcome = await expect(link, 'welcome');
  if (welcome.limits.inflightMax > side.inflightMax) {
    throw new Error(
      `the server agreed to ${welcome.limits.inflightMax} calls in flight, asked were ${side.inflightMax}`,
    );
  }
  if ((welcome.limits.streamsMax ?? 0) > side.streamsMax) {
    throw new Error(
      `the server agreed to ${welcome.limits.streamsMax} open streams, asked were ${side.streamsMax}`,
    );
  }
  const known = new KnownPeer(server, welcome.identity, verifiedOf(link.duplex));
  const binding = bindingOf(link.duplex, offer, hello, welcome, link.takeOpening());
  const { cipher } = welcome;
  if (cipher !== undefined && (binding === undefined || !ciphers.includes(cipher)))
    throw new Error(`the server has chosen ${JSON.stringify(cipher)} to seal with, which was not offered`);
  const wire = cipher !== undefined ? 'sealed' : binding !== undefined ? 'bound' : 'none';
  const guard = guardOfClient(known.security, wire);
  const missing = wire !== guard ? 'peer' : side.require;
  checkLevel('client', side.require, levelOf(known.security, guard), missing);
  const reasons = new FabricReasons(side);
  reasons.add((welcome.without ?? []).filter(({ name }) => (side.fabrics as string[]).includes(name)));
  const agreed: Agreed = { link, side, welcome, server: known, binding, guard, attaches: 0 };
  for (const fabric of side.fabrics) {
    if (!welcome.fabrics.includes(fabric)) {
      reasons.add([{ name: fabric, reason: 'the server does not offer it' }]);
      continue;
    }
    const connected = await tryFabric(agreed, fabric);
    if (typeof connected !== 'string') {
      reasons.chosen(server, fabric, connected.context, connected.target.session);
      return connected;
    }
    reasons.failed(fabric, connected);
  }
  throw unavailable(
    reasons.tried
      ? `the control connection was made, but none for data: no fabric connects (${reasons})`
      : `no fabric in common (${reasons})`,
  );
}

/** What hello and welcome have come to. */
interface Agreed {
  readonly link: Link;
  readonly side: LocalSide;
  readonly welcome: Welcome;
  readonly server: KnownPeer;
  readonly binding: Binding | undefined;
  readonly guard: Guard;
  /** Attach frames that have been sent. */
  attaches: number;
}

async function tryFabric(agreed: Agreed, fabric: FabricName): Promise<Connection | string> {
  const { link, side, welcome, server, guard } = agreed;
  const { cipher } = welcome;
  const bound = agreed.binding?.attempt(agreed.attaches, fabric);
  let prepared: Prepared;
  try {
    prepared = prepareSession(side, fabric, welcome.limits, welcome.limits, welcome.features, {
      guard,
      ...(cipher !== undefined &&
        bound !== undefined && { seal: { cipher, keys: bound.sealKeys('client') } }),
    });
  } catch (error) {
    return textOf(error);
  }
  const { context, target } = prepared;
  try {
    const address = context.clientAddress(target.session);
    ++agreed.attaches;
    link.send({ type: 'attach', fabric, address, ...(bound && { proof: bound.attach(address) }) });
    const answer = await expect(link, 'attached', 'unreachable');
    if (answer.type === 'unreachable') {
      discardSession(prepared, answer.reason);
      return answer.reason;
    }
    if (bound !== undefined) {
      checkProof(answer.proof, bound.attached(address, answer.address), 'the queue pair of the server');
    }
    const words = bound?.firstWords('client', address, answer.address);
    link.awaits = `the control connection was made, but none for data (${fabric})`;
    const why = await link.whileOpen(context.connect(target.session, answer.address, side.through, words));
    link.awaits = undefined;
    if (why !== '') {
      discardSession(prepared, why);
      // The server may have refused meanwhile, and its queue pair have gone with that: what it has said is read first.
      await setImmediate();
      if (link.refusal !== undefined) throw refused(link.refusal);
      link.send({ type: 'unreachable', reason: controlText(why) });
      return why;
    }
  } catch (error) {
    discardSession(prepared, textOf(error));
    throw error;
  }
  link.send({ type: 'ready' });
  return {
    ...prepared,
    fabric,
    server,
    pings: (welcome.features & feature.ping) !== 0,
    answersGoaway: (welcome.features & feature.leave) !== 0,
  };
}

/** With what this connection says: the address of this end, and where fabrics that need one are to dial. */
function sideOf(side: LocalSide, duplex: Duplex): LocalSide {
  const address = ownAddress(duplex);
  const path = dialledPath(duplex);
  const through = path === undefined ? peerPlace(duplex) : { path };
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

/** What is to be shown on this connection. Rejects when it may not be shown there, and nothing has been sent. */
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

/** Dials and shakes hands. Gives up with the signal's reason, an Error, when it fires. */
export async function openConnection(
  dial: Dial,
  side: LocalSide,
  server: string,
  signal: AbortSignal,
): Promise<Opened> {
  const duplex = await dial(signal);
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
    return { link, connection: await connectOver(link, here, server, metadata) };
  } catch (error) {
    link.close('the handshake failed');
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
