/**
 * Tests `rdma-rpc top` on real processes: a table without a terminal, a screen that updates in a terminal,
 * and its output for processes that stop or end.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Channel, createChannel, createClient } from 'rdma-rpc';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { View } from '../../../cli/top/view.ts';
import { needs } from '../../needs.ts';
import { EchoDefinition } from '../../runtime/gen/echo.rdma.ts';
import { ServerProcess } from '../../runtime/process/processes.ts';
import { main, run } from '../command.ts';
import { expectSchema } from '../schemas.ts';

let server: ServerProcess;
let channel: Channel;
const call = async (): Promise<void> => {
  await createClient(EchoDefinition, channel).echo({ text: 'x' });
};

beforeEach(async () => {
  server = await ServerProcess.start();
  channel = createChannel(server.address, { fabric: 'shm' });
  await call();
});
afterEach(async () => {
  await channel.close();
  await server.kill('SIGKILL');
});

const pid = (): string => String(server.child.pid);

describe('without a terminal', () => {
  test('is one table of the process, by its pid or by the address that it serves', async () => {
    for (const target of [pid(), server.address]) {
      const { code, out, errors } = await run('top', target, '--interval', '0.2');
      expect({ code, errors }).toEqual({ code: 0, errors: '' });
      expect(out).toContain(`rdma-rpc top   ${pid()} `);
      expect(out).toMatch(/Echo +server +0 +0 +- +- +1$/m);
      expect(out).toMatch(/^127\.0\.0\.1:\d+ .* server +shm /m);
    }
  });

  test('--json prints a line for each reading, as in the schema', async () => {
    const { code, out } = await run('top', pid(), '--once', '--json', '--interval', '0.2');
    expect(code).toBe(0);
    const view = expectSchema<View>('top', JSON.parse(out) as View);
    expect(view.pid).toBe(server.child.pid);
    expect(view.counters.requests).toBe(1);
    expect(view.sessions).toMatchObject([{ side: 'server', fabric: 'shm', state: 'ready', framesIn: 1 }]);
    expect(view.sessions[0]!.security).toBe('none');
  });

  test('without a terminal, lines are complete, or as long as COLUMNS', async () => {
    const once = ['top', pid(), '--once', '--interval', '0.2'];
    const before = process.env.COLUMNS;
    onTestFinished(() => {
      process.env.COLUMNS = before ?? '';
    });
    process.env.COLUMNS = '';
    expect((await run(...once)).out).not.toContain('…');
    process.env.COLUMNS = '60';
    const { out } = await run(...once);
    for (const line of out.split('\n')) expect([...line].length).toBeLessThanOrEqual(60);
  });

  test('a stopped process can be read, and is shown as stopped', async () => {
    server.child.kill('SIGSTOP');
    const { code, out } = await run('top', pid(), '--once', '--interval', '0.2');
    server.child.kill('SIGCONT');
    expect(code).toBe(0);
    expect(out).toMatch(/^thread +STOPPED /m);
    expect(out).toContain('Echo/Echo');
  });

  test.each([
    ['999999999', 1, /process 999999999 does not exist/],
    ['1', 1, /process 1 /],
    ['nonsense', 2, /nonsense is neither a PID nor an address/],
    ['127.0.0.1:1', 1, /no process of this user, on this machine, listens at 127\.0\.0\.1:1/],
    ['unix:/nowhere', 1, /listens at unix:\/nowhere/],
    ['unix:', 2, /neither a PID nor an address/],
  ])('%s: exit code %i and one sentence', async (target, expected, sentence) => {
    const { code, errors } = await run('top', target, '--once');
    expect(code).toBe(expected);
    expect(errors).toMatch(sentence);
    expect(errors.trim().split('\n')).toHaveLength(1);
    const json = await run('top', target, '--once', '--json');
    expectSchema('top', JSON.parse(json.out));
  });

  test('an address of another machine matches no local process that listens at the same port', async () => {
    const elsewhere = `192.0.2.1:${server.address.split(':').at(-1)}`;
    const { code, errors } = await run('top', elsewhere, '--once');
    expect(code).toBe(1);
    expect(errors).toMatch(/on this machine, listens at 192\.0\.2\.1:\d+/);
  });

  test.each(['0', 'soon', '-1', '1e9'])('--interval %s is refused', async (interval) => {
    expect(await run('top', pid(), '--interval', interval)).toMatchObject({ code: 2 });
  });
});

describe('in a terminal', () => {
  needs('terminal');
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-top-'));
  const socket = join(folder, 'tmux');
  const tmux = (...args: string[]): string =>
    execFileSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const tmuxLater = promisify(execFile);
  /** Waits until the screen is as expected. */
  const screen = async (wanted: RegExp): Promise<string> => {
    for (;;) {
      const { stdout } = await tmuxLater('tmux', ['-S', socket, 'capture-pane', '-p', '-t', 'top']);
      if (wanted.test(stdout)) return stdout;
    }
  };
  beforeAll(() => {
    tmux(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      '-s',
      'top',
      '-x',
      '100',
      '-y',
      '24',
      'env PS1="ready> " sh',
    );
  });
  afterAll(() => {
    tmux('kill-server');
    rmSync(folder, { recursive: true });
  });
  const start = (target = pid()): void => {
    tmux('send-keys', '-t', 'top', '-R');
    tmux(
      'send-keys',
      '-t',
      'top',
      `clear; '${process.execPath}' '${main}' top ${target} -i 0.1; echo "ended $?"`,
      'Enter',
    );
  };
  const settings = (): string => {
    const tty = tmux(
      'display-message',
      '-p',
      '-t',
      'top',
      '#{pane_tty} #{alternate_on} #{cursor_flag}',
    ).trim();
    return `${tty} ${execFileSync('stty', ['-F', tty.split(' ')[0]!, '-a'], { encoding: 'utf8' })
      .match(/-?icanon|-?echo\b/g)
      ?.join(' ')}`;
  };

  test('the screen follows the process, fits when the size changes, and q leaves the terminal as it was', async () => {
    await screen(/ready>/);
    const before = settings();
    start();
    const first = await screen(/Echo +server/);
    // Values that change from run to run are replaced by words.
    const stable = first
      .replace(/top {3}\d+ .*/, 'top   PID COMMAND')
      .replace(/127\.0\.0\.1:\d+ \(.*?\) */, 'PEER ')
      .replace(/-?\d[\d.,k]*( ?([KMG]?B|bytes|us|ms|s|%)\b)?/g, '#')
      .replace(/ +/g, ' ')
      .replace(/(# ){0,}-( -| #)* #$/gm, '#')
      .trimEnd();
    await expect(stable).toMatchFileSnapshot('screens/live.txt');
    await call();
    await screen(/Echo +server .* 2$/m);
    tmux('resize-window', '-t', 'top', '-x', '60', '-y', '12');
    const small = await screen(/… \d+ more|METHOD/);
    for (const line of small.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
    tmux('resize-window', '-t', 'top', '-x', '100', '-y', '24');
    tmux('send-keys', '-t', 'top', 'q');
    await screen(/ended 0/);
    expect(settings()).toBe(before);
  });

  test('^C leaves the terminal as it was', async () => {
    await screen(/ready>/);
    const before = settings();
    start();
    await screen(/Echo +server/);
    tmux('send-keys', '-t', 'top', 'C-c');
    await screen(/ended 0/);
    expect(settings()).toBe(before);
  });

  test('a stopped process is reported, and so is one that ends', async () => {
    start();
    await screen(/Echo +server/);
    server.child.kill('SIGSTOP');
    await screen(/STOPPED/);
    server.child.kill('SIGCONT');
    await screen(/loop lag/);
    await server.kill('SIGKILL');
    expect(await screen(/ended 1/)).toMatch(/process \d+ has ended/);
  });
});
