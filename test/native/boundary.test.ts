/**
 * Tests constants that exist in TypeScript and in C++: the constants of the boundary, and limits. The
 * constants are compared with the values with which the addon was compiled.
 */
import { expect, test } from 'vitest';
import { fabricNames, fabrics } from '../../runtime/fabrics.ts';
import {
  callSlots,
  gatherEntriesMax,
  memoryWaitMs,
  receivesBesides,
  reservedSlots,
  sealChunkBytes,
  sealTagBytes,
  sessionIndexMask,
  slotHeadBytes,
  slotShare,
} from '../../runtime/limits.ts';
import {
  Ctl,
  copiedMemory,
  Ev,
  EvKind,
  firstWindowBits,
  GatherEntry,
  leasedMemory,
  loadNative,
  notRun,
  PendingRelease,
  Reason,
  reassembledMessage,
  receiveSlab,
  Slots,
  Sub,
  SubOp,
  shortMessageSlots,
  submitAligned,
  submitReplyBufferOnly,
  Use,
} from '../../runtime/native/native.ts';

test('both sides of the boundary have the same constants and limits', () => {
  const Flags = {
    notRun,
    aligned: submitAligned,
    replyBufferOnly: submitReplyBufferOnly,
    leasedMemory,
    copiedMemory,
    receiveSlab,
    reassembledMessage,
    shortMessageSlots,
    firstWindowBits,
  };
  const Limits = {
    callSlots,
    sessionIndexMask,
    slotShare,
    reservedSlots,
    receivesBesides,
    slotHeadBytes,
    memoryWaitMs,
    gatherEntriesMax,
    sealChunkBytes,
    sealTagBytes,
  };
  const Versions = Object.fromEntries(fabricNames.map((name) => [name, fabrics[name].version]));
  expect(loadNative().boundary()).toEqual({
    Slots,
    Sub,
    SubOp,
    Ev,
    EvKind,
    Reason,
    Ctl,
    Use,
    PendingRelease,
    GatherEntry,
    Flags,
    Versions,
    Limits,
  });
});
