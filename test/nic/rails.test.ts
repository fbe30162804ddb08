/**
 * Hosts with several NICs, of our own making, each in a network of its own. The client has nic0 and nic1, the
 * server nic2 and nic3. An address with `?` reaches no other one, although its network says so.
 */
import { beforeAll, expect, test } from 'vitest';
import { needs, whyNot } from '../needs.ts';
import { buildNics, runOnNics } from './nics.ts';

needs('build');
needs('verbs');
beforeAll(() => (whyNot('build') + whyNot('verbs') === '' ? buildNics() : undefined));

const on = (addresses: readonly string[]): string =>
  addresses.map((address) => `mlx5@${address}/16`).join(',');

test.each([
  ['the second of each', ['10.1.0.1', '10.2.0.1', '10.3.0.2', '10.2.0.2'], ['nic1', 'nic3']],
  ['the first and the second', ['10.2.0.1', '10.1.0.1', '10.3.0.2', '10.2.0.2'], ['nic0', 'nic3']],
])('the devices of one network connect at once: %s', async (_, addresses, devices) => {
  expect(await runOnNics('rails', on(addresses))).toEqual({ wrong: [], devices, attaches: 1 });
});

test.each([
  ['of the client', ['?10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2']],
  ['of the server', ['10.1.0.1', '10.2.0.1', '?10.1.0.2', '10.2.0.2']],
])('when the first device %s reaches nothing, the next one is tried', async (_, addresses) => {
  const devices = ['nic1', 'nic3'];
  expect(await runOnNics('rails', on(addresses))).toEqual({ wrong: [], devices, attaches: 2 });
});

test('when no device reaches the server, the error has a reason and each device was tried once', async () => {
  const addresses = ['?10.1.0.1', '?10.2.0.1', '10.1.0.2', '10.2.0.2'];
  expect(await runOnNics('rails', on(addresses))).toEqual({
    error: expect.stringContaining('No route to host'),
    attaches: 2,
  });
});

test.each([
  ['connects on the usual devices', ['10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2'], ['nic0', 'nic2']],
  ['is asked for one device alone', ['?10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2'], undefined],
])('a server of a release that knows one device %s', async (_, addresses, devices) => {
  const seen = await runOnNics('olderRails', on(addresses));
  if (devices === undefined) {
    expect(seen).toEqual({ error: expect.stringContaining('No route to host'), attaches: 1 });
  } else {
    expect(seen).toEqual({ wrong: [], devices, attaches: 1 });
  }
});
