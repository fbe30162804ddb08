/** The constants of runtime/native.ts and native/session/boundary.h, as the addon was compiled with them. */
import { expect, test } from 'vitest';
import {
  briefSlots,
  Ctl,
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
  submitSinkOnly,
  Use,
  wholeMessage,
} from '../../runtime/native.ts';

test('both sides of the boundary have the same constants', () => {
  const Flags = {
    notRun,
    image: submitImage,
    sinkOnly: submitSinkOnly,
    leasedMemory,
    receiveSlab,
    wholeMessage,
    briefSlots,
    firstWindowBits,
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
  });
});
