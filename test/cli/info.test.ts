/** Tests the output of `rdma-rpc info` on a simulated machine. */
import { expect, test } from 'vitest';
import type { Facts } from '../../cli/machine/facts.ts';
import { infoOf, infoText } from '../../cli/machine/info.ts';
import type { DeviceCounters } from '../../runtime/counters/device-counters.ts';
import { expectSchema } from './schemas.ts';
import { capabilities, device, scripted, server, withDevices } from './scripted-machine.ts';

test('info prints the machine, the fabrics and the limits', () => {
  const counted: DeviceCounters[] = [
    { device: 'mlx5_0', port: 1, counters: { port_xmit_data: 7, out_of_sequence: 12, np_cnp_sent: 0 } },
    { device: 'mlx5_7', port: 1, counters: { out_of_sequence: 1 } },
  ];
  const facts = {
    ...withDevices(device),
    fabrics: [
      {
        name: 'shm',
        whyNot: '',
        capabilities: { ...capabilities, pinsMemory: false, segmentedBytes: 32 * 1024 },
      },
      { name: 'verbs', whyNot: '' },
      { name: 'tcp', whyNot: 'sockets are forbidden' },
    ],
  } satisfies Facts;
  const info = infoOf(scripted(server), facts, counted);
  expectSchema('info', JSON.parse(JSON.stringify(info)));
  const text = infoText({
    ...info,
    version: '1.2.3',
    node: 'v22.0.0',
    kernel: '6.1.0',
    arch: 'x64',
    cpus: 8,
  });
  expect(`\n${text}\n`).toMatchInlineSnapshot(`
    "
    rdma-rpc 1.2.3, Node v22.0.0, Linux 6.1.0 x64, 8 processors

    shm: can be used
      has: memory windows, immediate data, shared receives
      lacks: on-demand paging, dmabuf
      inline up to 512 B, up to 16 pieces in a SEND, 1 in a READ, 16 READs at a time
      queues of 8192, messages up to 1 GiB
      what does not fit a slot goes in several SENDs up to 32 KiB, longer by READ and WRITE
    verbs: can be used
    tcp: cannot be used: sockets are forbidden

    1 RDMA device, 1 can be used
    rdma_cm: can be used
    locked memory: 

    mlx5_0 (InfiniBand): can be used
      port 1: ACTIVE, Ethernet, MTU 4096
        GID 3: 10.77.0.1 (RoCE v2, eth1)
      has: memory windows, immediate data, shared receives
      lacks: on-demand paging, dmabuf
      inline up to 512 B, up to 16 pieces in a SEND, 1 in a READ, 16 READs at a time
      queues of 8192, messages up to 1 GiB
      what does not fit a slot goes by READ and WRITE

    mlx5_0: firmware 22.38.1002, MT_0000000359
      port 1: 100 Gb/sec (4X EDR), LinkUp
      port 1 has counted: out_of_sequence 12

    sessions can be sealed with aes-256-gcm or chacha20-poly1305 (security.require, or --require of commands)
    a message goes inline while it fits what the device takes inline, in a slot up to 8 KiB (17 KiB on shm); each fabric above says how longer messages go
    bytes from 16 KiB on are sent from where they are, and from 4 KiB on received as views
    messages up to 64 MiB, 256 calls in flight a session, 1024 send slots a thread
    arena up to 256 MiB, registered buffers kept up to 256 MiB
    "
  `);
  expect(infoText({ ...info, whyNoAddon: 'it is missing' })).toMatch(/\n\nno connections: it is missing$/);
});
