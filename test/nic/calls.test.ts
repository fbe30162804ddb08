/**
 * The runtime over NICs of our own making. The tests make calls of all four kinds and all sizes on NICs with
 * windows, without windows, and without shared receives. They also end clients, and use hosts with several
 * devices.
 */
import { beforeAll, expect, test } from 'vitest';
import { needs, whyNot } from '../needs.ts';
import { buildNics, runOnNics } from './nics.ts';

needs('build');
needs('verbs');
beforeAll(() => (whyNot('build') + whyNot('verbs') === '' ? buildNics() : undefined));

test.each([
  ['mlx5', 'window'],
  ['irdma', 'staging'],
  ['bnxt_re', 'staging'],
])('%s carries calls of all kinds and sizes (%s)', async (profile, exposure) => {
  expect(await runOnNics('calls', `${profile},${profile}`)).toEqual({
    wrong: [],
    fabric: 'verbs',
    device: 'nic0',
    exposure,
    protocolErrors: 0,
  });
});

test.each(['mlx5', 'irdma'])('on %s, a server outlives clients that end in their calls', async (profile) => {
  expect(await runOnNics('kills', `${profile},${profile}`)).toEqual({ wrong: [], aborted: 5 });
});

test.each([
  ['the second of each', ['10.1.0.1', '10.2.0.1', '10.3.0.2', '10.2.0.2'], 'nic1'],
  ['the first and the second', ['10.2.0.1', '10.1.0.1', '10.3.0.2', '10.2.0.2'], 'nic0'],
])('the devices of one network connect: %s', async (_, addresses, device) => {
  const nics = addresses.map((address) => `mlx5@${address}/16`).join(',');
  expect(await runOnNics('rails', nics)).toEqual({ wrong: [], device, number: 1 });
});
