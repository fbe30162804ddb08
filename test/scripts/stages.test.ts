/**
 * Tests the steps of check.mjs: a step that did not run does not count as passed, no failure is lost, and no
 * step stops another.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

const url = (name: string) => JSON.stringify(new URL(`../../scripts/${name}`, import.meta.url).href);
const node = (text: string) => `'node', '--input-type=module', '-e', ${JSON.stringify(text)}`;
const ends = (code: number, prints = '') =>
  node(`console.log(${JSON.stringify(prints)}); process.exitCode = ${code}`);
const records = (name: string, result: object, code = 0) =>
  node(
    `import { record } from ${url('results.mjs')}; record(${JSON.stringify(name)}, ${JSON.stringify(result)}); process.exitCode = ${code}`,
  );

let results = '';
beforeEach(() => {
  results = mkdtempSync(join(tmpdir(), 'rdma-rpc-stages-'));
});
afterEach(() => rmSync(results, { recursive: true }));

/**
 * Runs these stages (JavaScript text, or the arguments of runStages()). Resolves to the output, to the
 * summary from `sum:` on, and to whether all stages passed.
 */
function run(stages: string): Promise<{ printed: string; summary: string[]; well: boolean }> {
  const program = `
    import { recorded, summarize } from ${url('results.mjs')};
    import { ahead, check, runStages, suite } from ${url('stages.mjs')};
    console.log((await runStages(${stages})).join('\\n'));
    console.log('sum:');
    process.exitCode = summarize(recorded()) ? 0 : 1;`;
  return new Promise((resolve) => {
    const env = { ...process.env, RDMA_RPC_RESULTS: results };
    execFile('node', ['--input-type=module', '-e', program], { env }, (error, printed) => {
      const summary = printed.slice(printed.indexOf('sum:')).trim().split('\n').slice(1);
      resolve({ printed, summary: summary.filter((line) => line !== ''), well: error === null });
    });
  });
}

test.each<[string, string, string[], boolean]>([
  ['a check that passes counts as one', `[[[check('a', ${ends(0)})]]]`, ['a: 1 passed, 0 failed'], true],
  [
    'a check that could not run is not passed, and says why',
    `[[[check('a', ${ends(77, 'not run: no network')}), check('b', ${ends(0)})]]]`,
    ['a: 0 passed, 0 failed', 'b: 1 passed, 0 failed', 'a: not run: no network'],
    true,
  ],
  [
    'a run in which nothing could run is no success',
    `[[[check('a', ${ends(77, 'not run: no network')})]]]`,
    ['a: not run: no network', '0 passed, 0 failed'],
    false,
  ],
  [
    'a step that fails stops no other step',
    `[[[check('a', ${ends(1)}), check('b', ${ends(0)})], [check('c', ${ends(0)})]], [[check('d', ${ends(0)})]]]`,
    ['b: 1 passed, 0 failed', 'c: 1 passed, 0 failed', 'd: 1 passed, 0 failed', '3 passed, 1 failed'],
    false,
  ],
  [
    'a suite with fewer names than failures has a line for the rest beside the sum, too',
    `[[[suite('s', ${records('s', { passed: 3, failed: 3, failures: ['x'], note: 'not finished' }, 1)})]]]`,
    ['s: failed: x', 's: failed: 2 without a name: not finished', '3 passed, 3 failed'],
    false,
  ],
  [
    'a suite that ends with an error and records nothing has failed',
    `[[[suite('s', ${ends(3)}), check('b', ${ends(0)})]]]`,
    ['1 passed, 1 failed'],
    false,
  ],
  [
    'a suite that has recorded its failures is not counted twice',
    `[[[suite('s', ${records('s', { passed: 3, failed: 2, failures: ['x', 'y'] }, 1)})]]]`,
    ['s: failed: x', 's: failed: y', '3 passed, 2 failed'],
    false,
  ],
  [
    'a suite that fails without a record is not explained by the failure of another suite',
    `[[[suite('s', ${ends(3)})], [suite('t', ${records('t', { failed: 1, failures: ['x'] }, 1)}), suite('u', ${ends(3)})]]]`,
    ['t: 0 passed, 1 failed', 't: failed: x', '0 passed, 3 failed'],
    false,
  ],
  [
    'a suite that cannot run is replaced by another one',
    `[[[{ ...suite('s', ${records('s', { whyNot: ['not root'] }, 77)}), otherwise: suite('t', ${records('t', { passed: 4 })}) }]]]`,
    ['s: not run: not root', '4 passed, 0 failed'],
    true,
  ],
  [
    'a step that only prepares does not count, whatever its result',
    `[[[ahead('build', ${ends(1)})], [check('a', ${ends(0)})]]]`,
    ['1 passed, 0 failed'],
    true,
  ],
  [
    'the last lines are the slowest ten tests, those not run, repeated or failed, and the sum',
    `[[[suite('s', ${records(
      's',
      {
        passed: 12,
        failed: 1,
        failures: ['f'],
        failedOnce: ['o'],
        whyNot: ['2 tests: w'],
        timed: Array.from({ length: 12 }, (_, i) => ({ name: `t${i}`, ms: 1000 * i })),
      },
      1,
    )})]]]`,
    [
      's: 12 passed, 1 failed',
      'the slowest tests:',
      ...[11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map((i) => `${i}.0 s: s: t${i}`),
      's: not run: 2 tests: w',
      's: failed once, passed in a fresh guest: o',
      's: failed: f',
      '12 passed, 1 failed',
    ],
    false,
  ],
])('%s', async (_, stages, expected, well) => {
  const seen = await run(stages);
  expect(seen.summary).toEqual(expect.arrayContaining(expected));
  expect(seen.summary.filter((line) => expected.includes(line))).toEqual(expected);
  expect(seen.well).toBe(well);
});

const endless = node('setInterval(() => {}, 1000)');
test('a step for which no time was left counts as not run', async () => {
  const { summary, well } = await run(
    `[[[check('a', ${ends(0)})], [check('b', ${ends(0)}), check('c', ${ends(1)})]]], { beginMs: -1 }`,
  );
  expect(summary.filter((line) => line.includes('not run: no time was left'))).toHaveLength(3);
  expect(summary.at(-1)).toBe('0 passed, 0 failed');
  expect(well).toBe(false);
});

test('a step that is stopped at the time limit counts as not run, and its recorded results count', async () => {
  // A separate process survives the step and keeps its output open.
  const begins = `import { spawn } from 'node:child_process'; import { record } from ${url('results.mjs')};
    record('part', { passed: 2 });
    spawn('sleep', ['60'], { stdio: 'inherit' });`;
  const { summary, well } = await run(
    `[[[suite('s', ${node(begins)}), check('t', ${ends(1)})], [check('u', ${endless})]]], { beginMs: 500, endMs: 3000 }`,
  );
  expect(summary.filter((line) => line.includes('not run'))).toEqual([
    expect.stringMatching(/^s: not run: it was stopped: no step begins after /),
    expect.stringMatching(/^t: not run: no time was left: no step begins after /),
    expect.stringMatching(/^u: not run: it was stopped: /),
  ]);
  expect(summary.at(-1)).toBe('2 passed, 0 failed');
  expect(well).toBe(true);
});

test('each step is listed with its duration, also one that replaced another', async () => {
  const { printed } = await run(
    `[[[{ ...suite('s', ${ends(77, 'not run: x')}), otherwise: check('t', ${ends(0)}) }]], [[ahead('u', ${ends(1)})]]]`,
  );
  expect([...printed.matchAll(/(\w) \d+\.\d min/g)].map(([, name]) => name)).toEqual(['s', 't', 'u']);
});

test('the output of parallel steps is not mixed', async () => {
  // Each step prints its second word after the other step has printed its first.
  const speak = (mine: string, other: string) =>
    node(
      `import { existsSync, writeFileSync } from 'node:fs';
       const file = (name) => process.env.RDMA_RPC_RESULTS + '-' + name;
       console.log('${mine} begins');
       writeFileSync(file('${mine}'), '');
       while (!existsSync(file('${other}'))) await new Promise((next) => setImmediate(next));
       console.log('${mine} ends');`,
    );
  const { printed } = await run(`[[[check('a', ${speak('x', 'y')})], [check('b', ${speak('y', 'x')})]]]`);
  for (const name of ['x', 'y']) {
    expect(printed).toContain(`${name} begins\n${name} ends\n`);
    rmSync(`${results}-${name}`);
  }
});

test.each<[string, string, string[]]>([
  ['the hash of a commit', '00000002ffffffffffffffffffffffffffffffff', ['c', 'a', 'b']],
  ['another one', '00000006ffffffffffffffffffffffffffffffff', ['a', 'b', 'c']],
  ['no commit', '', ['a', 'b', 'c']],
])('turned() begins where %s says, and omits nothing', async (_, hash, expected) => {
  const { turned } = await import(new URL('../../scripts/stages.mjs', import.meta.url).href);
  expect(turned(['a', 'b', 'c'], hash)).toEqual(expected);
});
