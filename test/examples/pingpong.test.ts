/**
 * Tests the ping-pongs. Each kind runs on each device that supports it, and is refused with the reason on the
 * others.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Kind, kinds, optionsOf, usage } from '../../examples/pingpong/options.ts';
import { play } from '../../examples/pingpong/play.ts';

const main = fileURLToPath(new URL('../../dist/examples/pingpong/main.js', import.meta.url));
const quiet = (): void => undefined;

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

/** Runs the program. `onListening` gets the port as soon as the program listens. */
async function run(args: readonly string[], onListening?: (port: number) => void): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let errors = '';
  child.stdout.on('data', (text) => {
    out += String(text);
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    errors += `${line}\n`;
    const port = /listening on port (\d+)/.exec(line)?.[1];
    if (port !== undefined) onListening?.(Number(port));
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, errors };
}

/** The features that each device lacks. Everything else must work. */
const lacks: Readonly<Record<string, Partial<Record<Kind, RegExp>>>> = {
  sim: { xsrq: /sim has no XRC/ },
  shm: {
    uc: /shm has no UC/,
    ud: /shm has no UD/,
    srq: /shm has no shared receive queues/,
    xsrq: /shm has no XRC/,
    multicast: /shm has no multicast/,
  },
  tcp: {
    uc: /tcp has no UC/,
    ud: /tcp has no UD/,
    srq: /tcp has no shared receive queues/,
    xsrq: /tcp has no XRC/,
    multicast: /tcp has no multicast/,
  },
};

describe.each(Object.keys(lacks))('on %s, both ends in one process', (device) => {
  test.each([...kinds])('%s', async (kind) => {
    const args = [kind, '-d', device, '-s', '512', '-n', '100', '-q', '3', '--both'];
    const why = lacks[device]![kind];
    if (why !== undefined) {
      await expect(play(optionsOf(args), quiet)).rejects.toThrow(why);
      return;
    }
    for (const events of [[], ['--events']]) {
      const played = await play(optionsOf([...args, ...events]), quiet);
      const rounds = kind === 'srq' ? 300 : 100;
      expect(played).toMatchObject({ rounds, bytes: 2 * rounds * 512, bytesChecked: 2 * rounds * 512 });
    }
  });
});

test.each(['shm', 'tcp'])('two processes on %s check what the other one has sent', async (device) => {
  const flags = ['rc', '-d', device, '-s', '1000', '-n', '50'];
  let dialled: Promise<Ended> | undefined;
  const server = run([...flags, '-p', '0'], (port) => {
    dialled = run([...flags, '-p', String(port), '127.0.0.1']);
  });
  for (const ended of [await server, await dialled]) {
    expect(ended, ended?.errors).toMatchObject({ code: 0 });
    expect(ended!.out).toMatch(
      /rc on \w+: 100000 bytes in .* Mbit\/sec\n50 iters in .* usec\/iter\n50000 bytes checked/,
    );
  }
});

test('a lost message ends the game with a sentence', async () => {
  await expect(play(optionsOf(['ud', '-s', '64', '--loss', '1000000']), quiet, 100)).rejects.toThrow(
    /no message for 0.1 s: the peer has ended, or a message of uc, ud or multicast was lost/,
  );
});

test('a message longer than a packet is refused', async () => {
  await expect(play(optionsOf(['ud', '-s', '100000']), quiet)).rejects.toThrow(/may have \(\d+\)/);
});

test.each<[string[], RegExp]>([
  [['rd'], /'rd' is none of rc, uc/],
  [['rc', 'here', 'there'], /one HOST is enough/],
  [['rc', 'here'], /sim are in one process/],
  [['rc', '-s', '0'], /--size 0: give a whole number from 1/],
  [['rc', '--fast'], /fast/],
])('a wrong command line: %s', (args, why) => {
  expect(() => optionsOf(args)).toThrow(why);
  expect(usage).toMatch(/--both/);
});

test('the program says what the device lacks, and ends with 1', async () => {
  expect(await run(['xsrq'])).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/^error: xsrq on sim: /),
  });
  expect(await run(['rd'])).toMatchObject({ code: 2, errors: expect.stringMatching(/usage: main.js/) });
});
