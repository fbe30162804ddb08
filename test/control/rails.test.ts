/** Tests the choice between several RDMA devices for one peer. */
import { describe, expect, test } from 'vitest';
import { bytesOf, gidOf, inNetwork } from '../../runtime/control/gids.ts';
import { railsOf, towards } from '../../runtime/control/rails.ts';
import type { VerbsDevice } from '../../runtime/native/native.ts';
import { device } from '../cli/scripted-machine.ts';

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('hex');

test.each([
  ['10.1.2.3', '00000000000000000000ffff0a010203'],
  ['fe80::1', 'fe800000000000000000000000000001'],
  ['::', '00000000000000000000000000000000'],
  ['2001:db8:1:2:3:4:5:6', '20010db8000100020003000400050006'],
  ['fd77::2:0:1', 'fd770000000000000000000200000001'],
  ['::ffff:10.0.0.1', '00000000000000000000ffff0a000001'],
])('%s has the bytes %s', (address, bytes) => {
  expect(hex(bytesOf(address))).toBe(bytes);
});

test.each([
  ['10.1.2.3', 24, '10.1.2.200', true],
  ['10.1.2.3', 24, '10.1.3.3', false],
  ['10.1.2.3', 23, '10.1.3.3', true],
  ['10.1.2.3', undefined, '10.1.2.3', false],
  ['fe80::1', 64, 'fe80::2', true],
  ['fd00:1::1', 64, 'fd00:2::1', false],
])('%s/%s has %s in its network: %s', (address, prefix, peer, is) => {
  expect(inNetwork({ gid: bytesOf(address), prefix }, bytesOf(peer))).toBe(is);
});

test('the GID of a blob is found, and other bytes have none', () => {
  const blob = Buffer.alloc(72);
  blob.write('RRVB');
  blob.set(bytesOf('10.0.0.9'), 56);
  expect(hex(gidOf(blob))).toBe(hex(bytesOf('10.0.0.9')));
  expect(gidOf(blob.subarray(0, 71))).toBeUndefined();
  expect(gidOf(Buffer.alloc(72))).toBeUndefined();
});

describe('rails', () => {
  const rail = (name: string, ...addresses: string[]): VerbsDevice => ({
    ...device,
    name,
    whyNot: '',
    ports: [
      {
        number: 1,
        state: 'ACTIVE',
        linkLayer: 'Ethernet',
        activeMtu: 4096,
        lid: 0,
        gids: addresses.map((gid, index) => ({ index, gid, type: 'RoCE v2', interface: '' })),
      },
    ],
  });
  const devices = [rail('r0', '10.1.0.1'), rail('r1', '10.2.0.1'), rail('r2', '10.3.0.1', '10.9.0.1')];
  const prefixes = new Map(['10.1.0.1', '10.2.0.1', '10.3.0.1'].map((address) => [address, 16]));
  const all = railsOf({ devices }, {}, prefixes);
  const order = (peers: string[], address?: string): string[] =>
    towards(all, peers.map(bytesOf), address).map((each) => each.device);

  test('are the addresses of this network namespace', () => {
    expect(all.map(({ address }) => address)).toEqual(['10.1.0.1', '10.2.0.1', '10.3.0.1']);
    const foreign = railsOf({ devices: [rail('r2', '10.9.0.1')] }, {}, prefixes);
    expect(foreign).toMatchObject([{ address: '10.9.0.1', prefix: undefined }]);
  });

  test('are only those of the options, and of ports that can be used', () => {
    expect(railsOf({ devices }, { port: 2 }, prefixes)).toEqual([]);
    expect(railsOf({ devices }, { device: 'r1,x*' }, prefixes)).toMatchObject([{ device: 'r1' }]);
    expect(railsOf({ devices }, { gidIndex: 1 }, prefixes)).toMatchObject([{ address: '10.9.0.1' }]);
    expect(railsOf({ devices: [{ ...devices[0]!, whyNot: 'it is DOWN' }] }, {}, prefixes)).toEqual([]);
  });

  test('are sorted: first the network of the peer, then the network of the address', () => {
    expect(order(['10.3.7.7'])).toEqual(['r2', 'r0', 'r1']);
    expect(order(['10.3.7.7'], '10.2.0.1')).toEqual(['r2', 'r1', 'r0']);
    expect(order(['192.168.0.1'], '10.2.0.1')).toEqual(['r1', 'r0', 'r2']);
    expect(order(['10.2.7.7', '10.1.7.7'], '10.2.0.1')).toEqual(['r1', 'r0', 'r2']);
    expect(order([])).toEqual(['r0', 'r1', 'r2']);
  });
});
