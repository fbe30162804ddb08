/** Tests the order in which the lists of a watched registry and its failures are delivered. */
import { expect, test } from 'vitest';
import { watchedResolver } from '../../runtime/discovery/watched.ts';
import { until } from '../outcomes.ts';
import { afterwards } from './bed.ts';

const listOf = (first: string) => [
  { address: first },
  ...Array.from({ length: 9_999 }, (_, i) => ({ address: `10.0.${i >> 8}.${i & 255}:1` })),
];

test('a list that waits for the end of a pause is delivered before a later failure', async () => {
  let follows = 0;
  const resolver = watchedResolver(() => async (onServers) => {
    if (++follows === 1) for (const first of ['a:1', 'b:1']) onServers(() => listOf(first));
    throw new Error('the registry has gone');
  });
  const delivered: (string | undefined)[] = [];
  afterwards(resolver.watch!((servers) => delivered.push((servers?.[0] as { address: string })?.address)));
  await until(() => delivered.includes(undefined));
  expect(delivered).toEqual(['a:1', 'b:1', undefined]);
  await expect(resolver.resolve(new AbortController().signal)).rejects.toThrow('the registry has gone');
});

test('a list that could not be made is made again after a pause, without a change of the registry', async () => {
  let made = 0;
  const list = () => {
    if (++made < 3) throw new Error('`doors` does not know this server yet');
    return [{ address: 'a:1' }];
  };
  const resolver = watchedResolver(() => (onServers) => {
    onServers(list);
    return new Promise(() => undefined);
  });
  const delivered: (string | undefined)[] = [];
  afterwards(resolver.watch!((servers) => delivered.push((servers?.[0] as { address: string })?.address)));
  await until(() => delivered.includes('a:1'));
  // The first failure makes the channels resolve, which tells them the reason.
  expect(delivered).toEqual([undefined, 'a:1']);
  expect(made).toBe(3);
});
