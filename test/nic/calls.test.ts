/**
 * Tests the runtime over simulated NICs: calls of all four kinds and all sizes on NICs with windows, without
 * windows, and without shared receives. Other tests end clients.
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
