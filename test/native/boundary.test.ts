/** The constants of runtime/native.ts and native/session/boundary.h, as the addon was compiled with them. */
import { expect, test } from 'vitest';
import { Ctl, Ev, EvKind, loadNative, notRun, Reason, Sub, SubOp, Use } from '../../runtime/native.ts';

test('both sides of the boundary have the same constants', () => {
  expect(loadNative().boundary()).toEqual({ Sub, SubOp, Ev, EvKind, Reason, Ctl, Use, Flags: { notRun } });
});
