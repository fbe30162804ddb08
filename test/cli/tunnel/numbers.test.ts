/**
 * A carrier has used all of its connection numbers: the last connections continue, and the carrier ends when
 * they end.
 */
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { Carrier, numberMax } from '../../../cli/tunnel/carrier.ts';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { dialTo, program } from './ends.ts';

test('the last two numbers are used, and then the carrier drains', async () => {
  const behind = await program((socket) => socket.pipe(socket), true);
  const front = await program((socket) => near.carry(socket), true);
  const ended: unknown[] = [];
  let wentAway = 0;
  const report = (): void => undefined;
  const near: Carrier = new Carrier({
    counts: newCounts(),
    report,
    onAway: () => void ++wentAway,
    onOver: (error) => void ended.push(error),
    lastNumber: numberMax - 2,
  });
  const far: Carrier = new Carrier({
    counts: newCounts(),
    report,
    accept: () => dialTo(behind.address, { allowHalfOpen: true }),
    onOver: (error) => void ended.push(error),
  });
  const over = [near.read(buffers(far)), far.read(buffers(near))];

  const clients = [];
  for (const word of ['first', 'last']) {
    expect(wentAway).toBe(0);
    const client = dialTo(front.address, { allowHalfOpen: true });
    client.write(word);
    expect(String((await once(client, 'data'))[0])).toBe(word);
    clients.push(client);
  }
  expect(wentAway).toBe(1);
  expect([near.size, far.size]).toEqual([2, 2]);

  for (const client of clients) client.end('more');
  expect(await Promise.all(clients.map((client) => text(client)))).toEqual(['more', 'more']);
  await Promise.all(over);
  expect(ended).toEqual([undefined, undefined]);
  await Promise.all([front.close(), behind.close()]);
});

/** Yields the data that the other carrier sends, copied into bytes of its own, as a stream delivers it. */
async function* buffers(from: Carrier) {
  for await (const { parts = [] } of from) yield { parts: parts.map((part) => Buffer.from(part)) };
}
