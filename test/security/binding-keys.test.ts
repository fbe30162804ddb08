/**
 * Compares the keys and proofs of a binding with values that other programs have computed: those of RFC 5869,
 * and those of docs/wire/connections.md.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Binding, hkdf } from '../../runtime/control/handshake/binding.ts';

describe('keys', () => {
  // Another program (Python's hmac) made these values from docs/wire/connections.md. Two sides that are built
  // from the same source would always agree.
  const secret = Uint8Array.from({ length: 32 }, (_, i) => i);
  const [hello, welcome] = [Buffer.from('hello'), Buffer.from('welcome')];
  const [client, server] = [Buffer.from('client'), Buffer.from('server')];
  const binding = new Binding(secret, [hello, welcome]);
  const bound = binding.attempt(3, 'tcp');
  // This binding has the same number and fabric, but belongs to a session in which the server makes the
  // calls.
  const reverse = binding.reverse(3, 'tcp');
  const [first, second] = ['83b39f794639e1f8e727dd20c825f0cf', 'fca68e07f1b3b0df3c5bf1384643fe1c'];
  const frames = {
    client: 'b23f5b5abecef91a2f04032a293296995434c2d821617f97476ef64ba8e885bb',
    server: 'a64994dbd9427306abecfd8491f376dd55d36fdbdfacbece631a8223e96820f8',
  };
  const bulk = {
    client: '1442bdbaa6d491dbff998dc795af171947866098ef65229ffca03273663a5d87',
    server: '6a8d239181b1a486345aa9f6263d9e7e4bb2f5f0eada21343e5b6140f88ae7a4',
  };
  test.each<[string, () => Buffer | Uint8Array, string]>([
    [
      'the proof of an attach frame',
      () => bound.attach(client),
      '0596dc5b53e0db2f9fb4a0c7776af7fff6b72b0c6c09b5e9f4fd7f5c036d0ede',
    ],
    [
      'the proof of its answer',
      () => bound.attached(client, server),
      '8682ead89340f5b354658f515c6961c0b7f388f9afb083ba2a7697e59ba5e33b',
    ],
    [
      'the words of connection setup, at the client',
      () => bound.setupWords('client', client, server),
      first + second,
    ],
    [
      'the words of connection setup, at the server',
      () => bound.setupWords('server', client, server),
      second + first,
    ],
    [
      'the keys of sealing, at the client',
      () => bound.sealKeys('client'),
      frames.client + frames.server + bulk.client + bulk.server,
    ],
    [
      'the keys of sealing, at the server',
      () => bound.sealKeys('server'),
      frames.server + frames.client + bulk.server + bulk.client,
    ],
    [
      'the proof of a serve frame',
      () => reverse.attach(client),
      'eb7700cf28df179e6c48fb733690aa587c5cb85f12f743a4c6d7ba321efe8f91',
    ],
    [
      'the first key of sealing of the session that it is for',
      () => reverse.sealKeys('client').subarray(0, 32),
      'e5cdf2c881164b62db44bde8c510d6abfdf2f1ad761918a2eb584e8752e8bde5',
    ],
  ])('are those of the wire page: %s', (_, made, golden) => {
    expect(Buffer.from(made()).toString('hex')).toBe(golden);
  });

  test('are those of HKDF, RFC 5869', () => {
    const hex = (text: string): Buffer => Buffer.from(text, 'hex');
    // These are its test cases 1 and 3, of which only the first block is compared.
    expect(
      hkdf(hex('0b'.repeat(22)), hex('000102030405060708090a0b0c'), hex('f0f1f2f3f4f5f6f7f8f9')).toString(
        'hex',
      ),
    ).toBe('3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf');
    expect(hkdf(hex('0b'.repeat(22)), '', Buffer.alloc(0)).toString('hex')).toBe(
      '8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d',
    );
    // Salts longer than a block of the hash are also tested.
    for (const saltBytes of [1, 32, 64, 65, 200]) {
      const [secret, salt, info] = [randomBytes(32), randomBytes(saltBytes), randomBytes(saltBytes)];
      expect(hkdf(secret, salt, info)).toEqual(Buffer.from(hkdfSync('sha256', secret, salt, info, 32)));
    }
  });
});
