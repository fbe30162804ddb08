/**
 * Tests `listen('unix:PATH')` when a file exists at its path. The tests check which file is there afterwards.
 * A server never removes files of others, and only one server has the address.
 */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Listener } from '../../runtime/control/socket/listener.ts';
import { isBound } from '../../runtime/control/socket/unix-path.ts';

let folder = '';
let path = '';
const listeners: Listener[] = [];
const closers: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-path-'));
  path = join(folder, 's');
});
afterEach(async () => {
  for (const listener of listeners.splice(0)) listener.close();
  for (const close of closers.splice(0)) await close();
  rmSync(folder, { recursive: true });
});

function listener(): Listener {
  const made = new Listener((socket) => socket.on('error', () => undefined).end('hello'));
  listeners.push(made);
  return made;
}

const listen = (at = path): Promise<string> => listener().listen(`unix:${at}`);

/** Makes a socket of another program at the path, which accepts connections. */
async function foreignSocket(at: string): Promise<void> {
  // (A client that only checks whether a server listens does not read.)
  const server = createServer((socket) => socket.on('error', () => undefined).end('other'));
  server.listen(at);
  await once(server, 'listening');
  closers.push(() => new Promise((closed) => server.close(closed)));
}

/** Makes a socket without a listener. */
async function deadSocket(at: string): Promise<void> {
  const server = createServer().listen(`${at}.born`);
  await once(server, 'listening');
  renameSync(`${at}.born`, at);
  await new Promise((closed) => server.close(closed));
}

async function answerAt(at: string): Promise<string> {
  let text = '';
  for await (const chunk of connect(at)) text += String(chunk);
  return text;
}

describe('an existing file that is not a socket is not changed', () => {
  const kinds: Record<string, () => void> = {
    'an ordinary file': () => writeFileSync(path, 'my only copy'),
    'an empty file': () => writeFileSync(path, ''),
    'a directory': () => mkdirSync(path),
    'a symbolic link to a file': () => {
      writeFileSync(join(folder, 'file'), 'my only copy');
      symlinkSync('file', path);
    },
    'a symbolic link to nothing': () => symlinkSync('nothing', path),
  };
  test.each(Object.keys(kinds))('%s', async (kind) => {
    kinds[kind]!();
    const before = lstatSync(path);
    await expect(listen()).rejects.toThrow(/EEXIST: .* exists and is not replaced; remove it/);
    expect(lstatSync(path)).toMatchObject({ ino: before.ino, size: before.size });
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test('when it is a symbolic link to a socket without a listener', async () => {
    await deadSocket(join(folder, 'dead'));
    symlinkSync('dead', path);
    await expect(listen()).rejects.toMatchObject({ code: 'EEXIST' });
    expect(readdirSync(folder).sort()).toEqual(['dead', 's']);
  });

  test('when it has the name of the lock', async () => {
    writeFileSync(`${path}.lock`, 'notes of mine');
    await expect(listen()).rejects.toThrow(/s\.lock is not a lock of rdma-rpc and is not replaced/);
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe('notes of mine');
    expect(readdirSync(folder)).toEqual(['s.lock']);
  });
});

test.each(['ENOENT', 'ENOTDIR'])('a folder that does not exist is named: %s', async (code) => {
  const parent = join(folder, 'parent');
  if (code === 'ENOTDIR') writeFileSync(parent, 'my only copy');
  await expect(listen(join(parent, 's'))).rejects.toMatchObject({
    code,
    message: `listen unix:${parent}/s: ${code}: there is no folder ${parent}`,
  });
  expect(readdirSync(folder)).toEqual(code === 'ENOENT' ? [] : ['parent']);
});

describe('only one server has an address', () => {
  test('a socket without a listener is replaced', async () => {
    await deadSocket(path);
    expect(await listen()).toBe(`unix:${path}`);
    expect(await answerAt(path)).toBe('hello');
  });

  test("another program's stays", async () => {
    await foreignSocket(path);
    await expect(listen()).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(await answerAt(path)).toBe('other');
  });

  test('of many servers that start at once, with or without a dead socket, one gets the path', async () => {
    for (let round = 0; round < 20; ++round) {
      const at = join(folder, String(round));
      if (round % 2 === 0) await deadSocket(at);
      const ends = await Promise.allSettled(Array.from({ length: 8 }, () => listen(at)));
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const end of ends)
        if (end.status === 'rejected') expect(String(end.reason)).toMatch(/EADDRINUSE: process \d+ listens/);
      expect(await answerAt(at)).toBe('hello');
    }
  });

  test('workers of node:cluster share a port, and the second one at a unix path gets an error that says what to do', async () => {
    const program = fileURLToPath(new URL('../runtime/process/cluster.mjs', import.meta.url));
    const both = async (address: string): Promise<string[]> => {
      const { stdout } = await promisify(execFile)(process.execPath, [program, address]);
      return (JSON.parse(stdout) as string[]).sort();
    };
    expect(await both('127.0.0.1:0')).toEqual(['listens', 'listens']);
    const [one, other] = await both(`unix:${path}`);
    expect(one).toMatch(
      /EADDRINUSE: process \d+ listens at this path .+ Workers of node:cluster \(PM2\) cannot share a unix path: listen on host:port/,
    );
    expect(other).toBe('listens');
  });

  test('a process that is killed leaves the address to the next one, and processes that begin at once share nothing', async () => {
    const start = async (): Promise<{ result: string; kill: () => Promise<unknown> }> => {
      const child = fork(fileURLToPath(new URL('../runtime/process/listen.mjs', import.meta.url)), [
        `unix:${path}`,
      ]);
      // A process that does not get the address ends by itself.
      const gone = once(child, 'exit');
      const [result] = (await once(child, 'message')) as [string];
      const kill = (): Promise<unknown> => {
        child.kill('SIGKILL');
        return gone;
      };
      return { result, kill };
    };
    const first = await start();
    expect(first.result).toBe('listens');
    await first.kill();
    expect(readdirSync(folder).sort()).toEqual(['s', 's.lock']);
    const next = await Promise.all([start(), start(), start()]);
    expect(next.map(({ result }) => result).sort()).toEqual(['EADDRINUSE', 'EADDRINUSE', 'listens']);
    await Promise.all(next.map(({ kill }) => kill()));
    await listen();
  });

  test.each([
    ['/run/x.sock', true],
    ['/run/y.sock', false],
    ['/run/../run/x.sock', true],
    ['/elsewhere/near.sock', true],
    ['/run/far', false],
  ])('a socket that is bound and refuses connections is not dead: %s', (at, bound) => {
    const table = [
      'Num       RefCount Protocol Flags    Type St Inode Path',
      '0000000000000000: 00000002 00000000 00000000 0001 01 1234 /run/x.sock',
      'ffff9c1a5d0e8000: 00000002 00000000 00010000 0001 01    56 near.sock',
      '0000000000000000: 00000002 00000000 00010000 0001 01 23456 @/run/far',
      '0000000000000000: 00000003 00000000 00000000 0001 03 999',
    ].join('\n');
    expect(isBound(at, table)).toBe(bound);
  });
});

describe('files that are removed at the end', () => {
  test('are the socket and the lock, once', async () => {
    const one = listener();
    await one.listen(`unix:${path}`);
    expect(readdirSync(folder).sort()).toEqual(['s', 's.lock']);
    one.close();
    expect(readdirSync(folder)).toEqual([]);
    writeFileSync(path, 'later');
    one.close();
    expect(readFileSync(path, 'utf8')).toBe('later');
  });

  test('are not other files that have replaced them', async () => {
    const one = listener();
    await one.listen(`unix:${path}`);
    rmSync(path);
    rmSync(`${path}.lock`);
    writeFileSync(path, 'a file');
    writeFileSync(`${path}.lock`, 'another');
    one.close();
    expect(readFileSync(path, 'utf8')).toBe('a file');
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe('another');
  });

  test("not another program's socket in its place", async () => {
    const one = listener();
    await one.listen(`unix:${path}`);
    rmSync(path);
    await foreignSocket(path);
    one.close();
    expect(await answerAt(path)).toBe('other');
  });

  test('are those of a server that is closed before it listens, too', async () => {
    await deadSocket(path);
    const one = listener();
    const listening = one.listen(`unix:${path}`);
    one.close();
    await expect(listening).rejects.toThrow('the server was shut down');
    expect(readdirSync(folder)).toEqual([]);
    const tcp = listener();
    const tcpListening = tcp.listen('127.0.0.1:0');
    tcp.close();
    await expect(tcpListening).rejects.toThrow('the server was shut down');
  });
});

test('a path that is too long for a socket is refused with the limit', async () => {
  const long = join(folder, 'x'.repeat(105 - folder.length - 1));
  mkdirSync(long);
  await expect(listen(join(long, 's'))).rejects.toThrow(/its folder has a name longer than 97 bytes/);
});
