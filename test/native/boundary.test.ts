/**
 * Constants that exist in TypeScript and in C++: those of the boundary, and limits, with the values that the
 * addon was compiled with.
 */
import { expect, test } from 'vitest';
import {
  callSlots,
  memoryWaitMs,
  piecesMax,
  receivesBesides,
  reservedSlots,
  sealChunkBytes,
  sealTagBytes,
  sessionPlaces,
  slotHeadBytes,
  slotShare,
} from '../../runtime/limits.ts';
import {
  briefSlots,
  Ctl,
  copiedMemory,
  Ev,
  EvKind,
  firstWindowBits,
  Held,
  leasedMemory,
  loadNative,
  notRun,
  Piece,
  Reason,
  receiveSlab,
  Slots,
  Sub,
  SubOp,
  submitImage,
  submitReplyBufferOnly,
  Use,
  wholeMessage,
} from '../../runtime/native/native.ts';

test('both sides of the boundary have the same constants and limits', () => {
  const Flags = {
    notRun,
    image: submitImage,
    replyBufferOnly: submitReplyBufferOnly,
    leasedMemory,
    copiedMemory,
    receiveSlab,
    wholeMessage,
    briefSlots,
    firstWindowBits,
  };
  const Limits = {
    callSlots,
    sessionPlaces,
    slotShare,
    reservedSlots,
    receivesBesides,
    slotHeadBytes,
    memoryWaitMs,
    piecesMax,
    sealChunkBytes,
    sealTagBytes,
  };
  expect(loadNative().boundary()).toEqual({
    Slots,
    Sub,
    SubOp,
    Ev,
    EvKind,
    Reason,
    Ctl,
    Use,
    Held,
    Piece,
    Flags,
    Limits,
  });
});
