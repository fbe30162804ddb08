/**
 * Tests the kinds of data that a session may send to a peer. Each kind has a feature bit of its own, which an
 * older peer does not set.
 */
import { expect, test } from 'vitest';
import { feature, ownFeatures } from '../../runtime/control/frames.ts';
import { peerTakes } from '../../runtime/control/handshake/session-setup.ts';

const all = ~0 >>> 0;

test.each([
  ['peerTakesSegments', feature.segments, 16],
  ['peerTakesInline', feature.inlineEntries, 64],
] as const)('%s', (option, bit, onWire) => {
  expect(bit).toBe(onWire);
  expect(ownFeatures & bit).toBe(bit);
  expect([0, bit, all & ~bit].map((features) => peerTakes(features)[option])).toEqual([false, true, false]);
});
