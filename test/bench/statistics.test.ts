/**
 * Tests the arithmetic behind the benchmark's figures: percentiles, medians over rounds, ratios and the
 * command line.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparison, type Round } from '../../bench/against.ts';
import { fillPayload, handlers, readPayload } from '../../bench/handlers.ts';
import { Latencies } from '../../bench/latencies.ts';
import { conflictOf, type Options, roundsOf, select } from '../../bench/options.ts';
import { fits, peerNames } from '../../bench/peers.ts';
import { figure, roundsText, scenarioTables, table } from '../../bench/report.ts';
import { groups } from '../../bench/rounds.ts';
import { median, medians, type Row } from '../../bench/rows.ts';
import { load, placementOf, scenarios } from '../../bench/scenarios.ts';
import { row } from './row.ts';

fc.configureGlobal({ seed: 20_261_121 });

describe('latencies', () => {
  it('returns no percentile when there are no samples', () => {
    expect(new Latencies(8).percentiles()).toEqual({ p50Us: 0, p99Us: 0, p999Us: 0 });
  });

  it('uses the nearest rank: for 1 to 1000, the 500th, the 990th and the 999th', () => {
    const latencies = new Latencies(1000);
    for (let us = 1000; us >= 1; us--) latencies.record(us);
    expect(latencies.percentiles()).toEqual({ p50Us: 500, p99Us: 990, p999Us: 999 });
  });

  it('keeps the last samples when there are more than fit', () => {
    const latencies = new Latencies(4);
    for (const us of [100, 100, 1, 2, 3, 4]) latencies.record(us);
    expect(latencies.percentiles()).toEqual({ p50Us: 2, p99Us: 4, p999Us: 4 });
    expect(latencies.recorded).toBe(6);
  });

  it('always returns recorded samples, in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1e6 }), { minLength: 1, maxLength: 50 }), (samples) => {
        const latencies = new Latencies(64);
        for (const us of samples) latencies.record(us);
        const { p50Us, p99Us, p999Us } = latencies.percentiles();
        expect(samples).toEqual(expect.arrayContaining([p50Us, p99Us, p999Us]));
        expect(p50Us).toBeLessThanOrEqual(p99Us);
        expect(p99Us).toBeLessThanOrEqual(p999Us);
        expect(samples.filter((us) => us <= p50Us).length * 2).toBeGreaterThanOrEqual(samples.length);
      }),
    );
  });
});

describe('medians', () => {
  it.each([
    [[5], 5],
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[], Number.NaN],
  ])('of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it('merges the rounds of a scenario and peer into one row, figure by figure', () => {
    const rounds = [
      row('echo', 'a', { callsPerSecond: 10, p50Us: 3 }),
      row('echo', 'b'),
      row('echo', 'a', { callsPerSecond: 30, p50Us: 1 }),
      row('echo', 'a', { callsPerSecond: 20, p50Us: 9 }),
    ];
    expect(medians(rounds)).toEqual([row('echo', 'a', { callsPerSecond: 20, p50Us: 3 }), row('echo', 'b')]);
  });
});

describe('rounds that others disturbed', () => {
  const rounds = (disturbed: boolean[]): Row[] =>
    disturbed.map((each, index) => row('echo', 'a', { callsPerSecond: 10 * (index + 1), disturbed: each }));

  it.each([
    ['one of three', [false, true, false], 20, false],
    ['two of three', [true, true, false], 30, false],
    ['all', [true, true, true], 20, true],
  ])('%s: the median is of the others, and says so where there are none', (_, disturbed, calls, marked) => {
    expect(medians(rounds(disturbed))).toEqual([
      row('echo', 'a', { callsPerSecond: calls, disturbed: marked }),
    ]);
    expect(scenarioTables(medians(rounds(disturbed))).includes('| a (!)')).toBe(marked);
  });
});

describe('--against', () => {
  const round = (before: number, after: number, disturbed = false): Round => ({
    before: row('echo', 'rdma-rpc', { callsPerSecond: before, cpuPercent: 200 }),
    after: row('echo', 'rdma-rpc', { callsPerSecond: after, cpuPercent: 100, p50Us: 0.5 }),
    disturbed,
  });
  const cells = (rounds: Round[]): string[] =>
    comparison(new Map([['echo', rounds]]))
      .split('\n')[2]!
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1);

  it('gives the median of the rounds’ own ratios, with the range', () => {
    const line = ['echo', '200', '100', '2.00', '1.00', '3.00', '0.50', '4.00', '3 of 3 rounds'];
    expect(cells([round(100, 300), round(200, 200), round(100, 200)])).toEqual(line);
  });

  const asked: Options = {
    against: 'HEAD',
    tree: 'build/against/1',
    only: [],
    node: [],
    rounds: 3,
    quick: false,
  };

  it.each([
    ['another commit and its build', {}, undefined],
    ['scenarios', { only: ['echo-32B', 'tcp'] }, undefined],
    ['the peer that is compared', { only: ['rdma-rpc', 'echo'] }, undefined],
    ['no commit, with everything else', { against: undefined, json: 'a', only: ['limit'] }, undefined],
    ['no build of that commit', { tree: undefined }, /npm run bench -- --against REF/],
    ['a file for rows', { json: 'rows.json' }, /leave --json out/],
    ['the file of the results', { markdown: 'RESULTS.md' }, /leave --markdown out/],
    ['the part of README.md', { readme: 'README.md' }, /leave --readme out/],
    ['one Node', { node: ['node24'] }, undefined],
    ['several Nodes', { node: ['node', 'node24'] }, /name one with --node/],
    ['other peers', { only: ['echo', 'grpc-js'] }, /leave --only grpc-js out/],
    ['peers of ours', { only: ['sealed'] }, /leave --only sealed out/],
  ])('with %s', (_, more, conflict) => {
    const found = conflictOf({ ...asked, ...more } as Options, peerNames);
    if (conflict === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(conflict);
  });

  it('omits rounds in which either was disturbed, and reports when none is left', () => {
    expect(cells([round(100, 300), round(100, 900, true)]).slice(3)).toEqual([
      ...['3.00', '3.00', '3.00', '0.50', '6.00'],
      '1 of 2 rounds',
    ]);
    expect(cells([round(100, 900, true)]).at(-1)).toBe('disturbed');
  });
});

const asked = (name: string): string[] => {
  const scenario = scenarios.find((each) => each.name === name)!;
  return peerNames.filter((peer) => fits(peer, scenario));
};

it('only ours and grpc-js measure a connection for each call', () => {
  expect(asked('open-call-close-x1')).toEqual(['rdma-rpc', 'grpc-js']);
});

describe('as in the quick start', () => {
  const plain = scenarios.filter((each) => each.plain && each.kind !== 'rest');

  it.each(plain.map(({ name }) => name))('%s is beside the same with everything given back', (name) => {
    const threads = name.startsWith('tcp-') ? [] : ['MessagePort'];
    expect(asked(name)).toEqual(['quick start', 'quick start, new', 'rdma-rpc', 'grpc-js', ...threads]);
  });

  it('echo and put run at three sizes on both networks, then two mixes, and stand first', () => {
    expect(plain).toHaveLength(14);
    expect(scenarios.slice(0, 14)).toEqual(plain);
  });

  it('three calls in ten of a mix are large', () => {
    const mixes = scenarios.filter(({ name }) => name.endsWith('-mixed-1MiB'));
    expect(mixes.map(({ inFlight, mixedTenths }) => [inFlight, mixedTenths])).toEqual([
      [8, 3],
      [64, 3],
      [8, 3],
      [64, 3],
    ]);
  });

  it('its peers have no other scenario', () => {
    expect(asked('rest-after-1MiB-x8')).toEqual(['quick start', 'grpc-js']);
    for (const scenario of scenarios.filter((each) => !each.plain))
      expect(fits('quick start', scenario) || fits('quick start, new', scenario)).toBe(false);
  });
});

describe('on one host', () => {
  const sockets = ['grpc-js', 'connect-node', 'net+protobufjs', 'net+msgpackr'];

  it.each([
    ['echo-1MiB-x8', ['rdma-rpc', 'sealed', 'limit', ...sockets, 'capnweb', 'MessagePort']],
    ['echo-16MiB-x2', ['rdma-rpc', 'limit', ...sockets, 'MessagePort']],
    ['echo-32B-x1-beside-16MiB', ['rdma-rpc', 'limit', ...sockets, 'MessagePort']],
    ['echo-32B-x1-beside-16MiB-elsewhere', ['rdma-rpc', ...sockets]],
  ])('%s: %j', (name, expected) => {
    expect(asked(name)).toEqual(expected);
  });
});

describe('over TCP', () => {
  it.each([
    [
      'tcp-echo-32B-x256',
      ['rdma-rpc', 'sealed', 'tls', 'grpc-js', 'grpc-js tls', 'net+protobufjs', 'net+msgpackr'],
    ],
    ['tcp-echo-32B-x1', ['rdma-rpc', 'sealed', 'tls', 'grpc-js', 'grpc-js tls', 'net bare']],
    ['tcp-put-1MiB-x8', ['rdma-rpc', 'sealed', 'grpc-js', 'grpc-js tls', 'C sender']],
    ['tcp-handshakes-x8', ['rdma-rpc', 'tls', 'tls bare']],
    ['tcp-sessions-x64', ['rdma-rpc']],
  ])('%s: %j', (name, expected) => {
    expect(asked(name)).toEqual(expected);
  });
});

describe('steps between the rows that all run', () => {
  it.each([
    ['echo-32B-x512', ['rdma-rpc', 'limit', 'grpc-js']],
    ['echo-32B-x4096', ['rdma-rpc', 'grpc-js']],
    ['echo-200B-x256', ['rdma-rpc', 'grpc-js']],
    ['echo-9KiB-x8', ['rdma-rpc', 'limit', 'grpc-js']],
    ['echo-64B-x32-mixed-128KiB', ['rdma-rpc', 'grpc-js']],
  ])('%s: %j', (name, expected) => {
    expect(asked(name)).toEqual(expected);
  });
});

describe('scenarios share a pair of processes', () => {
  const small = load('echo', '32B', 32, 1);
  const other = load('put', '1MiB', 1 << 20, 8);

  it.each([
    ['whatever they carry', other, 1],
    ['with as many connections', { ...other, sessions: 1 }, 1],
    ['not with more connections', { ...other, sessions: 2 }, 2],
    ['not over another network', { ...other, network: 'tcp' as const }, 2],
    ['not when one sleeps', { ...other, polling: 'event' as const }, 2],
    ['not as in the quick start, which is about new processes', { ...other, plain: true }, 2],
    ['not when one is on one CPU', { ...other, together: true }, 2],
  ])('%s', (_, scenario, pairs) => {
    expect(groups([small, scenario])).toHaveLength(pairs);
  });
});

describe('payloads', () => {
  it.each([1, 32, 251, 4096])('of %d bytes are read to their last byte', async (bytes) => {
    const payload = new Uint8Array(bytes);
    fillPayload(payload);
    expect(readPayload(payload)).toBe(bytes);
    expect((await handlers.put({ payload, id: 7 })).id).toBe(bytes);
  });

  it('that lost their end are noticed', () => {
    const payload = new Uint8Array(300);
    fillPayload(payload);
    expect(readPayload(payload.subarray(0, 299))).toBe(0);
  });
});

describe('the report', () => {
  it.each([
    [4_512_345, '4,510,000'],
    [1.158, '1.16'],
    [0, '-'],
    [Number.NaN, '-'],
    [0.26, '0.26'],
  ])('writes %d as %s', (value, text) => {
    expect(figure(value)).toBe(text);
  });

  it.each([
    [1, undefined, 'one round'],
    [3, undefined, 'medians of 3 rounds'],
    [1, 'alternating rounds', 'one round'],
    [5, 'alternating rounds', 'medians of 5 alternating rounds'],
  ])('says how figures of %d round(s) came about', (rounds, kind, text) => {
    expect(roundsText(rounds, kind)).toBe(text);
  });

  it('pads columns to their widest cell', () => {
    expect(
      table([
        ['peer', 'n'],
        ['a', '100'],
      ]),
    ).toBe('| peer |   n |\n| ---- | --: |\n| a    | 100 |');
  });

  it('gives ratios to grpc-js and to the limit, and names each placement with its peers', () => {
    const text = scenarioTables([
      row('echo', 'rdma-rpc', { callsPerSecond: 500, placement: 'free, spins' }),
      row('echo', 'limit', { callsPerSecond: 1000, placement: 'free, spins' }),
      row('echo', 'grpc-js', { callsPerSecond: 2 }),
    ]);
    expect(text).toContain('Placement: free, spins (rdma-rpc, limit); free, sleeps (grpc-js).');
    const ours = text.split('\n').find((line) => line.startsWith('| rdma-rpc'));
    expect(ours?.split('|').map((cell) => cell.trim())).toEqual([
      '',
      'rdma-rpc',
      '500',
      '-',
      '1',
      '2',
      '3',
      '100',
      '250',
      '50 %',
      '',
    ]);
  });

  it('states where the processes ran and how they waited', () => {
    const asleep = scenarios.find((each) => each.together)!;
    const usual = scenarios.find((each) => !each.together)!;
    const placement = { server: '2', client: '3', all: '2,3', one: '2' };
    const [spins, sleeps] = [{ polls: true }, { polls: false }];
    expect(placementOf(usual, placement, spins)).toBe('apart, spins, then sleeps');
    expect(placementOf(usual, placement, sleeps)).toBe('apart, sleeps');
    expect(placementOf(usual, placement, { ...sleeps, threads: true })).toBe(
      'two threads on CPUs 2,3, sleeps',
    );
    expect(placementOf(asleep, placement, spins)).toBe('both on CPU 2, sleeps');
    expect(placementOf(usual, undefined, spins)).toBe('free, spins, then sleeps');
  });
});

describe('--rounds', () => {
  it.each(['1', '100'])('%s', (text) => {
    expect(roundsOf(text)).toBe(Number(text));
  });

  it.each(['0', '101', '1.5', 'many'])('refuses %s', (text) => {
    expect(() => roundsOf(text)).toThrow('1 to 100');
  });
});

describe('--only', () => {
  const names = ['echo-32B-x1', 'echo-32B-x32', 'idle'];
  const peers = ['rdma-rpc', 'limit'];
  it.each([
    [[], names, peers],
    [['echo'], ['echo-32B-x1', 'echo-32B-x32'], peers],
    [['limit'], names, ['limit']],
    [['idle', 'rdma'], ['idle'], ['rdma-rpc']],
  ])('%j', (only, expectedScenarios, expectedPeers) => {
    expect(select(only, names, peers)).toEqual({ scenarios: expectedScenarios, peers: expectedPeers });
  });

  it('refuses a name that matches nothing, and lists the available ones', () => {
    expect(() => select(['grpc'], names, peers)).toThrow(/--only grpc.*idle.*limit/);
  });
});
