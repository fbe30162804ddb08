/** Tests the CPUs that the benchmark gives to the two sides of a pair, on machines of several shapes. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it, test } from 'vitest';
import {
  type Cpu,
  commandOn,
  cpusOf,
  placementHere,
  placementOfCpus,
  placementText,
} from '../../bench/placement.ts';

it.each([
  ['0', [0]],
  ['0-3', [0, 1, 2, 3]],
  ['0-1,4,6-7\n', [0, 1, 4, 6, 7]],
  ['', []],
])('the list %j is the CPUs %j', (list, cpus) => {
  expect(cpusOf(list)).toEqual(cpus);
});

describe('the sides have', () => {
  /** Makes a machine; each core is written as `package/hardware threads`. */
  const machine = (...cores: string[]): Cpu[] =>
    cores.flatMap((text) => {
      const [socket = '', threads = ''] = text.split('/');
      return cpusOf(threads).map((id) => ({ id, package: socket, core: threads }));
    });

  it.each([
    ['a CPU each of two', machine('0/0', '0/1'), '0', '1', '0,1'],
    ['a hardware thread each of one core', machine('0/0-1'), '0', '1', '0,1'],
    ['whole cores', machine('0/0,4', '0/1,5', '0/2,6', '0/3,7'), '0,4,1,5', '2,6,3,7', '0,4,1,5,2,6,3,7'],
    ['equal halves: the third core is left alone', machine('0/0', '0/1', '0/2'), '0', '1', '0,1'],
    ['one package, the one with more CPUs', machine('0/0', '1/1', '1/2'), '1', '2', '1,2'],
    ['only what is allowed', machine('0/3', '0/7'), '3', '7', '3,7'],
  ])('%s', (_, cpus, server, client, all) => {
    expect(placementOfCpus(cpus)).toEqual({ server, client, all, one: server.split(',')[0] });
  });

  it.each([
    ['one CPU', machine('0/0')],
    ['one CPU in each package', machine('0/0', '1/1')],
    ['no known CPU', []],
  ])('nothing of their own on a machine with %s', (_, cpus) => {
    expect(placementOfCpus(cpus)).toBeUndefined();
  });

  it('their CPUs named in the head of a report', () => {
    const placement = { server: '0', client: '1,3', all: '0,1,3', one: '0' };
    expect(placementText(placement)).toBe('The server runs on CPU 0, and the client on CPUs 1,3.');
  });
});

describe('a command', () => {
  it('runs unchanged when processes are not pinned', () => {
    expect(commandOn(undefined, ['node', 'end.js'])).toEqual(['node', 'end.js']);
  });

  test('runs on the CPUs given', ({ skip }) => {
    const { placement, text } = placementHere();
    if (placement === undefined) return skip(text);
    for (const cpus of [placement.server, placement.client, placement.one]) {
      const [file = '', ...args] = commandOn(cpus, ['cat', '/proc/self/status']);
      const { stdout } = spawnSync(file, args, { encoding: 'utf8' });
      const allowed = /^Cpus_allowed_list:\s*(\S+)/m.exec(stdout)?.[1] ?? '';
      expect(cpusOf(allowed)).toEqual(cpusOf(cpus).sort((a, b) => a - b));
    }
  });
});
