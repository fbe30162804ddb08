/** Tests the log lines of a channel that loses a connection, while it stays ready by another one or not. */
import { createClient } from 'rdma-rpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
  bed.start('a:1', 'b:1');
});
afterEach(() => bed.close());

/** Lines about lost connections. A line about the choice of the fabric comes with each connection, too. */
function open(addresses: string[]) {
  const lines: string[] = [];
  const channel = bed.channel(addresses, {
    log: (line) => void (/lost|another/.test(line) && lines.push(line)),
    backoffMs: 600_000,
    backoffMaxMs: 600_000,
  });
  return { lines, channel };
}

test.each([[['a:1', 'b:1']], [['a:1']]])('a connection of %j that breaks is logged', async (addresses) => {
  const { lines, channel } = open(addresses);
  await createClient(EchoDefinition, channel).fetch({});
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  bed.far('a:1').destroy();
  await until(() => lines.length > 0);
  expect(lines).toEqual([expect.stringMatching(/^a:1: the connection was lost: .+/)]);
  expect(channel.totals.losses).toBe(1);
});

test('a server that shuts down, and a channel that is closed, lose nothing', async () => {
  const { lines, channel } = open(['a:1', 'b:1']);
  await createClient(EchoDefinition, channel).fetch({});
  await until(() => channel.addresses.every(({ state }) => state === 'ready'));
  await bed.stop('a:1');
  await until(() => channel.addresses[0]?.state !== 'ready');
  await channel.close();
  expect([lines, channel.totals.losses]).toEqual([[], 0]);
});
