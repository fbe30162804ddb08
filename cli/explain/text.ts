/**
 * Describes a call of a given size in sentences: the tier of each message, the operations of each side, and
 * the reasons. `rdma-rpc explain` uses this file.
 */
import { slotBytesOn } from '../../runtime/boundary/contexts.ts';
import { gatherBytes } from '../../runtime/limits.ts';
import type { Half, Outcome, Trial, Work } from './trial.ts';

export type Tier = 'inline' | 'eager' | 'segmented' | 'bulk';

export interface Step {
  readonly side: 'client' | 'server';
  readonly operation: string;
  readonly count: number;
  readonly bytes?: number;
}

export interface Message {
  readonly bytes: number;
  readonly tier: Tier;
  readonly why: string;
  readonly steps: readonly Step[];
}

const times = (name: keyof Work, operation: string, bytes?: keyof Work) => ({ name, operation, bytes });
const operations = [
  times('inlineSends', 'SEND, inline'),
  times('eagerSends', 'SEND from a registered slot'),
  times('bulkReads', 'RDMA READ', 'bulkReadBytes'),
  times('bulkWrites', 'RDMA WRITE', 'bulkWriteBytes'),
];

function stepsOf({ client, server }: Half): Step[] {
  return (['client', 'server'] as const).flatMap((side) => {
    const work = side === 'client' ? client : server;
    return operations.flatMap(({ name, operation, bytes }) =>
      work[name] === 0
        ? []
        : { side, operation, count: work[name], ...(bytes === undefined ? {} : { bytes: work[bytes] }) },
    );
  });
}

const shown = (bytes: number): string => `${bytes.toLocaleString('en')} bytes`;

export function tierOf(which: 'request' | 'response', { client, server }: Half): Tier {
  const sender = which === 'request' ? client : server;
  if (server.bulkReads + server.bulkWrites > 0) return 'bulk';
  if (sender.segmentedMessages > 0) return 'segmented';
  return sender.eagerSends > 0 ? 'eager' : 'inline';
}

export function explained(
  which: 'request' | 'response',
  half: Half,
  { bytes, carrier }: Trial['request'],
  { fabric, capabilities, exposure, security }: Outcome,
): Message {
  const slotBytes = slotBytesOn(fabric);
  const sender = which === 'request' ? half.client : half.server;
  const moved = half.server.bulkReads + half.server.bulkWrites;
  const tier = tierOf(which, half);
  if (tier === 'inline')
    return {
      bytes,
      tier,
      why: `its frame fits the ${shown(capabilities.maxInline)} that the device takes along with a SEND`,
      steps: stepsOf(half),
    };
  if (tier === 'eager')
    return {
      bytes,
      tier,
      why: `its frame is longer than the ${shown(capabilities.maxInline)} that go inline, and fits a slot of ${shown(slotBytes)}`,
      steps: stepsOf(half),
    };
  if (tier === 'segmented')
    return {
      bytes,
      tier,
      why: `it does not fit a slot of ${shown(slotBytes)}, and several SENDs cost less on this fabric than to show its memory for a ${which === 'request' ? 'READ' : 'WRITE'}`,
      steps: stepsOf(half),
    };
  const inPlace = sender.mrHits + sender.mrMisses > 0;
  const copied =
    security === 'sealed'
      ? 'it is sealed there, so that it cannot be read in transit'
      : carrier === 'text' || bytes < gatherBytes
        ? `only a bytes field of ${shown(gatherBytes)} or more is sent in place`
        : capabilities.copiesLate
          ? 'this fabric reads memory after the call has been made, so that of the application is copied'
          : which === 'request' && bytes <= capabilities.copiedRequestBytes
            ? 'on this fabric a copy costs less than to have the server read memory that is not shared'
            : 'memory of the application cannot be shown here';
  const source = inPlace
    ? 'out of the memory of the application, without a copy'
    : `out of the arena, where it was encoded or copied to: ${copied}`;
  const keys =
    exposure === 'window'
      ? 'through a memory window that lasts this one call'
      : exposure === 'staging'
        ? 'by way of the staging memory of its session'
        : 'through the keys of registrations (exposure: shared)';
  const verb = which === 'request' ? 'READ by the server' : 'WRITTEN by the server';
  const { replyBuffersAsked, replyBuffersPredicted } = half.client;
  const grant =
    which === 'request'
      ? ''
      : replyBuffersAsked > 0
        ? '; the server asked for the memory first, as nothing was known of the size of responses'
        : replyBuffersPredicted > 0 || moved > 0
          ? '; the memory for it came with the request, as the last responses were large'
          : '';
  const segments = capabilities.segmentedBytes;
  const tooLong =
    segments === 0
      ? `it does not fit a slot of ${shown(slotBytes)}`
      : `it does not fit a slot of ${shown(slotBytes)}, nor the ${shown(segments)} that go in several SENDs`;
  return {
    bytes,
    tier,
    why: `${tooLong}, so it is ${verb} ${source}, ${keys}${grant}`,
    steps: stepsOf(half),
  };
}

const line = ({ side, operation, count, bytes }: Step): string =>
  `    ${side}: ${count === 1 ? '' : `${count} × `}${operation}${bytes === undefined ? '' : ` (${shown(bytes)})`}`;

export function messageText(which: string, { bytes, tier, why, steps }: Message): string {
  return [`  ${which} of ${shown(bytes)}: ${tier}`, `    ${why}`, ...steps.map(line)].join('\n');
}
