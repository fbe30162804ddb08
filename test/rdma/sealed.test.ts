/**
 * Tests `sealed` on a wire that an attacker can read. The attacker sees nothing of a sealed call, but
 * everything of a call that is not sealed.
 */
import type { SecurityLevel } from 'rdma-rpc';
import { beforeEach, describe, expect, test } from 'vitest';
import { clientDevice, pattern, same, until } from './pair.ts';
import { secured } from './secured.ts';
import { WireTap, whyNoTap } from './wire-tap.ts';

const why = whyNoTap();

const pair = secured();

test('small and large calls of a sealed session are answered', async () => {
  const { channel, client } = pair.reachBy('sealed');
  for (const [number, bytes] of [0, 100, 8_000, 300_000, 3_000_000].entries()) {
    const payload = pattern(bytes, number);
    const answer = await client.echo({ number, payload });
    expect([answer.number, same(answer.payload, payload)]).toEqual([number, true]);
  }
  expect(channel.session).toMatchObject({ fabric: 'verbs', device: clientDevice, security: 'sealed' });
});

describe('an attacker that reads the wire', () => {
  beforeEach(({ skip }) => skip(why !== '', why));

  test('sees the calls of a session that is not sealed, and nothing of a sealed one', async () => {
    const tap = await WireTap.open();
    pair.beside.push(tap);
    const marked = async (level: SecurityLevel, marker: string): Promise<void> => {
      const { client } = pair.reachBy(level);
      const filled = (bytes: number) => Buffer.alloc(bytes, `${marker}-large `);
      await client.echo({ text: `${marker}-small` });
      await client.echo({ payload: filled(300_000) });
    };
    await marked('sealed', 'secret');
    await marked('bound', 'public');
    // All earlier packets have been seen by then.
    await until(
      () => tap.saw('public-large'),
      (seen) => seen,
    );
    const seen = ['public-small', 'public-large', 'secret-small', 'secret-large', 'secret'].map((text) =>
      tap.saw(text),
    );
    expect(seen).toEqual([true, true, false, false, false]);
  });
});
