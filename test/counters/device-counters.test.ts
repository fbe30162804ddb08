/**
 * Tests the counters of RDMA devices, read from a folder like the kernel's.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isTrouble, readDeviceCounters } from 'rdma-rpc/counters';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-counters-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function put(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

describe('counters of devices', () => {
  it('are those of the kernel and of the driver, by port, in order', async () => {
    put({
      'mlx5_1/ports/2/counters/port_rcv_errors': '3\n',
      'mlx5_1/ports/1/counters/port_xmit_data': '9007199254740991\n',
      'mlx5_1/ports/1/hw_counters/out_of_sequence': '12\n',
      'mlx5_1/ports/1/hw_counters/lifespan': '10\n',
      'mlx5_0/ports/1/hw_counters/np_cnp_sent': '1\n',
    });
    expect(await readDeviceCounters(undefined, root)).toEqual([
      { device: 'mlx5_0', port: 1, counters: { np_cnp_sent: 1 } },
      { device: 'mlx5_1', port: 1, counters: { port_xmit_data: 9007199254740991, out_of_sequence: 12 } },
      { device: 'mlx5_1', port: 2, counters: { port_rcv_errors: 3 } },
    ]);
  });

  it('of a device as a whole have port 0', async () => {
    put({ 'irdma0/hw_counters/cnpHandled': '5', 'irdma0/ports/1/state': '4: ACTIVE' });
    expect(await readDeviceCounters(undefined, root)).toEqual([
      { device: 'irdma0', port: 0, counters: { cnpHandled: 5 } },
    ]);
  });

  it('are left out when the driver gives no number, or refuses the file', async () => {
    put({
      'hfi1_0/ports/1/counters/symbol_error': 'N/A (no PMA)\n',
      'hfi1_0/ports/1/counters/VL15_dropped': '',
      'hfi1_0/ports/1/counters/link_downed': '1',
      // A folder cannot be read as a file.
      'hfi1_0/ports/1/counters/port_rcv_errors/none': '',
    });
    expect(await readDeviceCounters(undefined, root)).toEqual([
      { device: 'hfi1_0', port: 1, counters: { link_downed: 1 } },
    ]);
  });

  it('are those of the requested devices', async () => {
    put({ 'a/hw_counters/x': '1', 'b/hw_counters/x': '2' });
    expect((await readDeviceCounters(['b', 'gone'], root)).map(({ device }) => device)).toEqual(['b']);
    expect(await readDeviceCounters([], root)).toEqual([]);
  });

  it('are empty without a device', async () => {
    expect(await readDeviceCounters(undefined, join(root, 'missing'))).toEqual([]);
  });
});

describe('trouble', () => {
  it.each([
    ...['out_of_sequence', 'packet_seq_err', 'rnr_nak_retry_err', 'local_ack_timeout_err', 'out_of_buffer'],
    ...['roce_adp_retrans', 'roce_slow_restart', 'np_cnp_sent', 'np_ecn_marked_roce_packets'],
    ...['port_xmit_discards', 'link_downed', 'VL15_dropped', 'excessive_buffer_overrun_errors'],
    ...[
      'duplicate_request',
      'retry_exceeded_err',
      'rcvd_rnr_err',
      'cnpHandled',
      'RxECNMrkd',
      'ip4InDiscards',
    ],
  ])('is counted by %s', (name) => expect(isTrouble(name)).toBe(true));

  it.each([
    ...['port_xmit_data', 'port_rcv_packets', 'unicast_rcv_packets', 'rx_write_requests', 'rx_read_requests'],
    ...['sent_pkts', 'rcvd_pkts', 'lifespan', 'rdma_sends', 'InRdmaWrites', 'multicast_xmit_packets'],
  ])('is not counted by %s', (name) => expect(isTrouble(name)).toBe(false));
});
