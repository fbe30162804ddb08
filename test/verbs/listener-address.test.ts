/**
 * Tests addresses of listeners of other programs: their bytes, and devices that have no rdma_cm.
 */
import { listenerAddress, openDevice, VerbsError } from 'rdma-rpc/verbs';
import { expect, test } from 'vitest';

const hex = (host: string, port: number): string => Buffer.from(listenerAddress(host, port)).toString('hex');
const magic = Buffer.from('RRVL').toString('hex');
const zeros = (bytes: number): string => '00'.repeat(bytes);

test.each([
  ['10.77.0.1', 6379, `${zeros(10)}ffff0a4d0001eb18`],
  ['::ffff:10.77.0.1', 6379, `${zeros(10)}ffff0a4d0001eb18`],
  ['::1', 1, `${zeros(15)}010100`],
  ['fd77::1', 65_535, `fd77${zeros(13)}01ffff`],
  ['2001:db8:1:2:3:4:5:6', 256, '20010db80001000200030004000500060001'],
  ['fe80::', 2, `fe80${zeros(14)}0200`],
])('%s, port %d', (host, port, wanted) => {
  expect(hex(host, port)).toBe(magic + wanted);
});

test.each<[unknown, unknown, RegExp]>([
  ['localhost', 1, /'localhost' is no IP address/],
  ['1.2.3', 1, /is no IP address/],
  ['10.0.0.1', 0, /0 is not an integer from 1/],
  ['10.0.0.1', 65_536, /is not an integer/],
  [5, 1, /takes an IP address/],
])('%s, port %s is refused', (host, port, why) => {
  expect(() => listenerAddress(host as string, port as number)).toThrow(why);
});

test.each(['sim', 'shm', 'tcp'])('%s has no rdma_cm', async (name) => {
  using device = openDevice(name);
  using pd = device.allocPd();
  using cq = device.createCq();
  using qp = pd.createQp({ type: 'rc', cq });
  await expect(qp.connect(listenerAddress('10.0.0.1', 5))).rejects.toThrow(VerbsError);
});
