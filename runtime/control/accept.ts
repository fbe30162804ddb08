/**
 * The server's side of the handshake (connect.ts is the other). No queue pair is made before the client's hello has been
 * checked. Called by a server for each accepted connection.
 */

import { textOf } from '../core/foreign.ts';
import { type FabricName, fabricRow } from '../fabrics.ts';
import { loadNative } from '../native.ts';
import { Ahead } from './ahead.ts';
import { type BoundAttempt, bindingOf, bindingOffer, bothBind, checkProof, commonCipher } from './binding.ts';
import { FabricReasons } from './fabric-reasons.ts';
import {
  controlText,
  type FabricReason,
  type Frame,
  type Hello,
  ownFeatures,
  version,
  type Welcome,
} from './frames.ts';
import { type HandoffRefusals, handoffRefusals } from './handoff.ts';
import { hostIdentity, whyNotReached } from './host.ts';
import type { Link } from './link.ts';
import { checkLevel, type Guard } from './security-level.ts';
import {
  discardSession,
  type LocalSide,
  localLimits,
  type Prepared,
  prepareSession,
} from './session-setup.ts';

/** Whether the client may have a session at all; undefined when that is clear at once. Throws or rejects to turn it away. */
export type Admit = (hello: Hello) => Promise<void> | undefined;

/** Makes the session known to its owner, before the first request can come. Throws to turn it away. */
export type Attach = (prepared: Prepared, hello: Hello) => void;

function message(error: unknown): string {
  return controlText(textOf(error));
}

async function next(link: Link): Promise<Frame> {
  const frame = await link.receive();
  if (frame.type === 'bye') throw new Error(frame.reason);
  return frame;
}

/** Why a client on that host cannot have this fabric by this connection, as far as can be told beforehand; '' when it may. */
function whyNot(name: FabricName, host: string, refusals: HandoffRefusals): string {
  const { reach, dials } = fabricRow(name);
  return whyNotReached(reach, host, hostIdentity()) || refusals[dials];
}

/** Why a client may not offer a fabric: what this connection rules out, else what it has decided. */
function notOffered(name: FabricName, refusals: HandoffRefusals): string {
  const { dials, hasDevice } = fabricRow(name);
  if (refusals[dials] !== '') return refusals[dials];
  const device = hasDevice ? 'has no RDMA device that it can use, or ' : '';
  return `the client does not offer it: it ${device}is told otherwise by its option fabric, or RDMA_RPC_FABRIC there`;
}

/** Fabrics that the client offers and this side can try; the reasons for the others are put down. */
function common(
  side: LocalSide,
  hello: Hello,
  reasons: FabricReasons,
  refusals: HandoffRefusals,
): FabricName[] {
  return side.fabrics.filter((name) => {
    const offer = hello.fabrics.find((each) => each.name === name);
    const why = offer === undefined ? notOffered(name, refusals) : whyNot(name, offer.host, refusals);
    if (why !== '') reasons.add([{ name, reason: why }]);
    return why === '';
  });
}

/**
 * What the client learns when the server could not connect to its queue pair, whatever the reason: that is about files and processes of this machine, which the
 * client has named. The log has it.
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

/** What a stranger may know of the reasons: not which files, devices and rights this machine lacks. */
function withoutFor(side: LocalSide, reasons: FabricReasons): FabricReason[] {
  const own = side.without.map(({ name }) => name);
  return reasons.list.map(({ name, reason }) => ({
    name,
    reason: own.includes(name) ? "the server cannot use it ('rdma-rpc devices' says why, there)" : reason,
  }));
}

/**
 * Resolves when the client says that its session is up: `attach` has been called with this side's, which may have been lost again. Rejects when
 * the link ends or the client breaks the rules; nothing is left behind then, except that an attached session still goes down by itself.
 * `peer` is for the log; `isOnly`: no other handshake is under way.
 */
export async function acceptOver(
  link: Link,
  side: LocalSide,
  peer: string,
  admit: Admit,
  attach: Attach,
  isOnly: () => boolean,
): Promise<void> {
  const hello = await next(link);
  if (hello.type !== 'hello') throw new Error(`the client began with ${hello.type} instead of hello`);
  const admitted = admit(hello);
  if (admitted !== undefined) await link.whileOpen(admitted);
  const reasons = new FabricReasons(side);
  const fabrics = common(side, hello, reasons, handoffRefusals(link.duplex));
  const told = new FabricReasons({ ...side, without: [] });
  const without = withoutFor(side, reasons);
  told.add(without);
  const own = localLimits(side);
  const agreed = {
    ...own,
    inflightMax: Math.min(own.inflightMax, hello.limits.inflightMax),
    streamsMax: Math.min(side.streamsMax, hello.limits.streamsMax ?? 0),
  };
  const offer = bindingOffer(link.duplex);
  const bound = bothBind(link.duplex, hello, offer);
  const cipher =
    bound && (hello.seals === true || side.require === 'sealed')
      ? commonCipher(loadNative().ciphers, hello.ciphers ?? [])
      : undefined;
  const guard: Guard = cipher !== undefined ? 'sealed' : bound ? 'bound' : 'none';
  // Who the client is has been looked at before.
  if (side.require !== 'peer') checkLevel('server', side.require, guard);
  const welcome: Welcome = {
    type: 'welcome',
    version,
    features: ownFeatures | offer.features,
    limits: agreed,
    fabrics,
    without,
    identity: side.identity,
    ...(offer.secret !== undefined && { secret: offer.secret }),
    ...(cipher !== undefined && { cipher }),
  };
  link.send(welcome);
  const binding = bindingOf(link.duplex, offer, hello, welcome, link.takeOpening());
  const prepare = (fabric: FabricName, attempt: BoundAttempt | undefined): Prepared =>
    prepareSession(side, fabric, hello.limits, agreed, hello.features, {
      guard,
      ...(cipher !== undefined &&
        attempt !== undefined && { seal: { cipher, keys: attempt.sealKeys('server') } }),
    });
  const skip = (fabric: FabricName, why: string, forClient = why): void => {
    reasons.failed(fabric, why);
    told.failed(fabric, forClient);
    link.send({ type: 'unreachable', reason: controlText(forClient) });
  };
  const ahead = new Ahead();
  if (isOnly()) {
    const likely = hello.fabrics.find(({ name }) => (fabrics as string[]).includes(name));
    ahead.make(side, likely?.name as FabricName | undefined, (fabric) =>
      prepare(fabric, binding?.attempt(0, fabric)),
    );
  }
  try {
    for (let tries = 0; tries < fabrics.length; ++tries) {
      const frame = await next(link);
      if (frame.type !== 'attach') throw new Error(`the client sent ${frame.type} instead of attach`);
      const fabric = fabrics.find((name) => name === frame.fabric);
      if (fabric === undefined) throw new Error('the client chose a fabric that was not offered');
      const attempt = binding?.attempt(tries, fabric);
      if (attempt !== undefined)
        checkProof(frame.proof, attempt.attach(frame.address), 'the queue pair of the client');
      let prepared: Prepared;
      try {
        // The one made ahead has the keys of the first attempt.
        prepared = (tries === 0 ? ahead.take(fabric) : undefined) ?? prepare(fabric, attempt);
      } catch (error) {
        skip(fabric, message(error));
        continue;
      }
      const { context, target } = prepared;
      const address = context.native.sessionAddress(target.session);
      const words = attempt?.firstWords('server', frame.address, address);
      const why = context.accept(target.session, frame.address, words);
      if (why !== '') {
        discardSession(prepared, why);
        skip(fabric, why, notReached(fabric));
        continue;
      }
      // The client may send its first request with or before `ready`: the owner has to be there first.
      try {
        attach(prepared, hello);
      } catch (error) {
        discardSession(prepared, message(error));
        throw error;
      }
      const proof = attempt?.attached(frame.address, address);
      link.send({ type: 'attached', address, ...(proof !== undefined && { proof }) });
      const last = await next(link);
      if (last.type === 'ready') {
        if (!context.has(target.session)) throw new Error(`${fabric}: the connection was lost at once`);
        reasons.chosen(peer, fabric, context, target.session);
        return;
      }
      const reason =
        last.type === 'unreachable' ? last.reason : `the client sent ${last.type} instead of ready`;
      context.closeSession(target.session, reason);
      if (last.type !== 'unreachable') throw new Error(reason);
      reasons.failed(fabric, reason);
      told.failed(fabric, reason);
    }
  } finally {
    ahead.drop();
  }
  throw new NotConnected(told, reasons);
}
