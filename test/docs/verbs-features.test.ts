/**
 * Tests that the table of the verbs' features is complete, and that it agrees with the software devices and
 * with the features that the sources of sessions and of `rdma-rpc/verbs` use and offer.
 * test/rdma/verbs.test.ts compares the columns of rxe and siw with these devices.
 */
import { openDevice } from 'rdma-rpc/verbs';
import { describe, expect, test } from 'vitest';
import { features } from '../../runtime/verbs/constants.ts';
import { projectFiles, read } from '../house/tree.ts';
import { asked, columns, featureRows } from '../verbs/feature-table.ts';
import { namesIn } from './document.ts';

const rows = featureRows();
const sourcesOf = (folder: RegExp): string =>
  projectFiles()
    .filter((path) => folder.test(path))
    .map(read)
    .join('\n');
const sessions = sourcesOf(/^native\/session\//);
const api = sourcesOf(/^runtime\/verbs\//);

/** Text that the sources of sessions contain if sessions use the feature. */
const usedBySessions: Readonly<Record<string, RegExp>> = {
  'SEND and receive': /Opcode::send\b/,
  'SEND with immediate': /Opcode::send_with_imm/,
  'SEND with invalidate': /Opcode::send_with_inv/,
  WRITE: /Opcode::rdma_write\b/,
  'WRITE with immediate': /Opcode::rdma_write_with_imm/,
  'READ, fence': /Opcode::rdma_read/,
  'fetch-and-add, compare-and-swap': /Opcode::atomic_/,
  'windows of type 2': /Opcode::bind_mw/,
  LOCAL_INV: /Opcode::local_inv/,
  'shared receive queues': /create_receive_queue/,
  'limit event of a shared queue': /arm_limit/,
  'UD, address handles, GRH': /QpType::ud|create_ah/,
  multicast: /attach_multicast/,
  UC: /QpType::uc/,
  'solicited events': /arm_solicited/,
  'RESET, INIT, RTR, RTS one by one': /stepwise/,
  'SQD and SQE': /QpState::sqd/,
  'ERR to RESET to INIT': /QpState::reset/,
};

test('the table has the 35 rows of the family, each once', () => {
  expect(rows.length).toBe(35);
  expect(new Set(rows.map(({ feature }) => feature)).size).toBe(35);
});

test('each feature of whyNot is a row', () => {
  expect(new Set(asked.values())).toEqual(new Set(features));
  for (const feature of asked.keys()) expect(rows.map((row) => row.feature)).toContain(feature);
});

describe.each(rows.map((row) => [row.feature, row] as const))('%s', (feature, row) => {
  test('has a yes or a reason in each cell', () => {
    for (const column of columns) expect(row.on[column]).toMatch(/^(yes|no|–)$/);
    expect(row.sessions).toMatch(/^(yes|no)$/);
    const isWhole =
      row.sessions === 'yes' && row.api !== 'no' && Object.values(row.on).every((cell) => cell === 'yes');
    if (!isWhole) expect(row.why).not.toBe('');
  });

  test('is offered by names that the API has', () => {
    for (const name of namesIn(row.api)) expect(api).toMatch(new RegExp(`\\b${name}\\b`));
    if (namesIn(row.api).length === 0) expect(row.api).toBe('no');
  });

  const used = usedBySessions[feature];
  test.skipIf(used === undefined)('is used by sessions as the table says', () => {
    expect(used!.test(sessions)).toBe(row.sessions === 'yes');
  });

  const asks = asked.get(feature);
  test.skipIf(asks === undefined).each(['sim', 'shm', 'tcp'] as const)(
    '%s has it as the table says',
    (fabric) => {
      using device = openDevice(fabric);
      expect(device.whyNot(asks!) === undefined ? 'yes' : 'no').toBe(row.on[fabric]);
    },
  );
});
