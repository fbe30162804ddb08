/**
 * Tests the sizes of the interoperability cases. Each message has its stated length, or the nearest possible
 * length.
 */
import { describe, expect, it } from 'vitest';
import { SimpleResponse } from './gen/interop.rdma.ts';
import { bodyFor } from './sizes.ts';

describe('the largest body of a message', () => {
  const encoded = (peer: string) => (body: Uint8Array) => ({ payload: { body, seed: 1 }, peer });

  it.each([63, 64, 65, 210, 8191, 8192, 17 * 1024])('fits %i bytes, and one more does not', (bytes) => {
    const message = encoded('unix:/run/a.sock');
    const body = bodyFor(SimpleResponse, message, bytes);
    const size = (of: number) => SimpleResponse.encode(message(new Uint8Array(of))).byteLength;
    expect(size(body)).toBeLessThanOrEqual(bytes);
    expect(size(body + 1)).toBeGreaterThan(bytes);
  });

  it('is empty beside a name that leaves no room', () => {
    expect(bodyFor(SimpleResponse, encoded('a'.repeat(63)), 63)).toBe(0);
  });
});
