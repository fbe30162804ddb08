/**
 * Tests hosts with several simulated NICs, each in a network of its own. The client has nic0 and nic1, and
 * the server has nic2 and nic3. An address with `?` reaches no other address, although they have the same
 * network.
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
  const seen = await runOnNics('olderServer', on(addresses));
  if (devices === undefined) {
    expect(seen).toEqual({ error: expect.stringContaining('No route to host'), attaches: 1 });
  } else {
    expect(seen).toEqual({ wrong: [], devices, attaches: 1 });
  }
});

test.each([
  // The server answers on the device in the network of the client, also to a client that does not choose.
  ['connects', ['10.1.0.1', '10.2.0.1', '10.3.0.2', '10.1.0.2'], ['nic0', 'nic3']],
  ['connects on the usual devices', ['10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2'], ['nic0', 'nic2']],
  ['tries one device alone', ['?10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2'], undefined],
])('a client of a release that knows one device %s', async (_, addresses, devices) => {
  const seen = await runOnNics('olderClient', on(addresses));
  if (devices === undefined) {
    expect(seen).toEqual({ error: expect.stringContaining('No route to host'), attaches: 1 });
  } else {
    expect(seen).toEqual({ wrong: [], devices, attaches: 1 });
  }
});

test('a client of such a release meets the server on tcp when its device reaches nothing', async () => {
  const addresses = ['?10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2'];
  expect(await runOnNics('olderClientWithTcp', on(addresses))).toEqual({
    wrong: [],
    devices: ['tcp', 'tcp'],
    attaches: 2,
  });
});

test('a client may try four devices, and is refused after that', async () => {
  const addresses = ['10.1.0.1', '10.2.0.1', '10.1.0.2', '10.2.0.2'];
  const answers = ['welcome', ...Array<string>(4).fill('unreachable'), 'refusal', 'end'];
  expect(await runOnNics('manyAttaches', on(addresses))).toEqual({ answers, wrong: [] });
});

/**
 * Addresses of NICs whose requests to connect are lost on the way, with `~` all of them and with `-` the
 * first. The NICs pass their trials, and their ports are ACTIVE.
 */
const silent = ['~10.1.0.1', '~10.2.0.1', '10.1.0.2', '10.2.0.2'];
const losesFirst = ['-10.1.0.1', '-10.2.0.1', '10.1.0.2', '10.2.0.2'];

test.each([
  ['in the usual time of an attempt', 'railsWithTcp'],
  ['in a time that is shorter than that of a device', 'railsInShortTime'],
  ['in the time of one of two doors', 'railsWithDoors'],
])('two devices that get no answer leave time for tcp: %s', async (_, scenario) => {
  // On a busy machine an attempt may take too long all the same. Then a later attempt connects.
  const devices = ['tcp', 'tcp'];
  expect(await runOnNics(scenario, on(silent))).toMatchObject({ wrong: [], devices });
});

test('a device repeats a request that was lost within its part of the time', async () => {
  // A quarter of the time of one device alone would be more than its part of the attempt.
  const devices = ['nic0', 'nic2'];
  expect(await runOnNics('railsInPartOfTime', on(losesFirst))).toEqual({ wrong: [], devices, attaches: 1 });
});
