/**
 * Tests all attributes of devices. This tests only refused queries, because this machine may have no RDMA
 * device.
 */
import { listDevices, queryDevice } from 'rdma-rpc/verbs';
import { expect, test } from 'vitest';

test.each(['sim', 'shm', 'tcp', 'nosuch0'])('%s is no RDMA device', (name) => {
  expect(() => queryDevice(name)).toThrow(`'${name}' is no RDMA device of this machine, which has`);
});

test('each RDMA device that can be opened returns its attributes, and those of its ports', () => {
  for (const { name, whyNot, ports } of listDevices()) {
    if (['sim', 'shm', 'tcp'].includes(name) || whyNot !== '') continue;
    const { attributes, ports: described } = queryDevice(name);
    expect(Number(attributes.max_qp)).toBeGreaterThan(0);
    expect(described.map(({ number }) => number)).toEqual(ports.map(({ number }) => number));
  }
});
