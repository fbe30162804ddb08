/**
 * The server's side of the handshake (connect.ts is the other). No queue pair is made before the client's hello has been
 * checked. Called by a server for each accepted connection.
 */
import type { FabricName } from '../call/contexts.ts';
import { controlText, type Frame, type Hello, version } from './frames.ts';
import { hostIdentity } from './host.ts';
import type { Link } from './link.ts';
import {
  discardSession,
  type LocalSide,
  localLimits,
  type Prepared,
  prepareSession,
} from './session-setup.ts';

/** Makes the session known to its owner, before the first request can come. Throws to turn it away. */
export type Attach = (prepared: Prepared, hello: Hello) => void;

function message(error: unknown): string {
  return controlText(error instanceof Error ? error.message : String(error));
}

async function next(link: Link): Promise<Frame> {
  const frame = await link.receive();
  if (frame.type === 'bye') throw new Error(frame.reason);
  return frame;
}

/** Fabrics that the client offers and this side can try. Those that need one host are left out for a client on another. */
function common(side: LocalSide, hello: Hello): FabricName[] {
  return side.fabrics.filter((name) =>
    hello.fabrics.some((offer) => offer.name === name && offer.host === hostIdentity()),
  );
}

/**
 * Resolves with the hello of a client whose session is up: `attach` has been called with it. Rejects when the link ends or the
 * client breaks the rules; nothing is left behind then, except that an attached session still goes down by itself.
 */
export async function acceptOver(link: Link, side: LocalSide, attach: Attach): Promise<Prepared> {
  const hello = await next(link);
  if (hello.type !== 'hello') throw new Error(`the client began with ${hello.type} instead of hello`);
  const fabrics = common(side, hello);
  const own = localLimits(side);
  const inflightMax = Math.min(own.inflightMax, hello.limits.inflightMax);
  link.send({
    type: 'welcome',
    version,
    features: 0,
    limits: { ...own, inflightMax },
    fabrics,
    identity: side.identity,
  });
  for (let tries = 0; tries < fabrics.length; ++tries) {
    const frame = await next(link);
    if (frame.type !== 'attach') throw new Error(`the client sent ${frame.type} instead of attach`);
    const fabric = fabrics.find((name) => name === frame.fabric);
    if (fabric === undefined) throw new Error('the client chose a fabric that was not offered');
    let prepared: Prepared;
    try {
      prepared = prepareSession(side, fabric, hello.limits, inflightMax);
    } catch (error) {
      skip(link, side, fabric, message(error));
      continue;
    }
    const { context, target } = prepared;
    const why = context.native.connectSession(target.session, frame.address);
    if (why !== '') {
      discardSession(prepared, why);
      skip(link, side, fabric, why);
      continue;
    }
    // The client may send its first request with or before `ready`: the owner has to be there first.
    try {
      attach(prepared, hello);
    } catch (error) {
      discardSession(prepared, message(error));
      throw error;
    }
    link.send({ type: 'attached', address: context.native.sessionAddress(target.session) });
    const last = await next(link);
    if (last.type === 'ready') return prepared;
    const reason =
      last.type === 'unreachable' ? last.reason : `the client sent ${last.type} instead of ready`;
    context.closeSession(target.session, reason);
    if (last.type !== 'unreachable') throw new Error(reason);
    side.log(`fabric skipped: ${fabric}: ${reason}`);
  }
  throw new Error('no fabric in common connects');
}

function skip(link: Link, side: LocalSide, fabric: FabricName, why: string): void {
  side.log(`fabric skipped: ${fabric}: ${why}`);
  link.send({ type: 'unreachable', reason: controlText(why) });
}
