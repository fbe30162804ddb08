/**
 * Tests servers and clients of Debian through `rdma-rpc tunnel`: each client must get the same data as
 * without the tunnel, and no byte may be wrong. A test is skipped, with a reason, when its program is
 * missing.
 */
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { whyNot } from '../needs.ts';
import { folder, freePort, output, serve, tunnelTo } from './programs.ts';

const { postgresPrograms } = (await import(new URL('../../scripts/debian.mjs', import.meta.url).href)) as {
  postgresPrograms: () => string | undefined;
};

/** Declares that the tests of a describe need the packages of `purpose` (scripts/debian.mjs). */
function needsProgram(purpose: string): void {
  const why = whyNot(purpose);
  if (why !== '') console.error(`not run: ${purpose} through the tunnel: ${why}`);
  beforeEach(({ skip }) => skip(why !== '', why));
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('redis', () => {
  needsProgram('redis');

  test.each([1, 16])('redis-benchmark, 50 connections, %d commands at a time', async (pipeline) => {
    const port = await freePort();
    await serve(port, 'redis-server', '--port', `${port}`, '--save', '', '--dir', folder());
    const near = await tunnelTo(port);
    const cli = (...args: string[]): Promise<string> => output('redis-cli', '-p', `${near}`, ...args);
    const load = ['-c', '50', '-n', '20000', '-P', `${pipeline}`, '-r', '500', '-d', '1000', '-t', 'set,get'];
    const lines = await output('redis-benchmark', '-p', `${near}`, '--csv', ...load);
    expect(lines).toMatch(/"SET","\d/);
    expect(lines).toMatch(/"GET","\d/);
    expect(lines).not.toMatch(/error/i);
    // Each key has one of 500 names.
    expect(Number(await cli('DBSIZE'))).toBe(500);
    const [info] = /^total_commands_processed:\d+/m.exec(await cli('INFO', 'stats'))!;
    expect(Number(info.split(':')[1])).toBeGreaterThanOrEqual(40_000);
  });
});

describe('PostgreSQL', () => {
  needsProgram('postgres');

  test('pgbench leaves books that balance', async () => {
    const programs = postgresPrograms()!;
    const data = join(folder(), 'data');
    const port = await freePort();
    // PostgreSQL does not run as root.
    const isRoot = process.getuid?.() === 0;
    mkdirSync(data, { mode: 0o700 });
    chmodSync(join(data, '..'), 0o755);
    if (isRoot) await output('chown', 'postgres', data);
    const as = (program: string, ...args: string[]): [string, ...string[]] => {
      const path = join(programs, program);
      return isRoot ? ['/sbin/runuser', '-u', 'postgres', '--', path, ...args] : [path, ...args];
    };
    await output(...as('initdb', '-D', data, '-A', 'trust', '-U', 'bench', '--no-sync'));
    const settings = ['-k', data, '-p', `${port}`, '-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1'];
    await serve(port, ...as('postgres', '-D', data, ...settings));
    const near = await tunnelTo(port);
    const where = ['-h', '127.0.0.1', '-p', `${near}`, '-U', 'bench'];
    const pgbench = (...args: string[]): Promise<string> =>
      output(join(programs, 'pgbench'), ...where, ...args, 'postgres');
    await pgbench('-i', '-s', '1', '-q');
    const said = await pgbench('-c', '8', '-j', '2', '-t', '100');
    expect(said).toMatch(/transactions actually processed: 800\/800/);
    expect(said).toMatch(/failed transactions: 0/);
    const sums = 'select sum(abalance), (select sum(delta) from pgbench_history) from pgbench_accounts';
    const query = await output(join(programs, 'psql'), ...where, '-At', '-c', sums, 'postgres');
    const [accounts, history] = query.trim().split('|');
    expect(accounts).toBe(history);
    const connects = await pgbench('-C', '-S', '-c', '4', '-t', '25');
    expect(connects).toMatch(/failed transactions: 0/);
  });
});

describe('nginx', () => {
  needsProgram('nginx');

  test('wrk with 100 connections sees no error, and a large file arrives whole', async () => {
    const place = folder();
    const port = await freePort();
    const large = randomBytes(50_000_000);
    writeFileSync(join(place, 'large'), large);
    writeFileSync(join(place, 'small'), 'a small page\n');
    chmodSync(place, 0o755);
    writeFileSync(
      join(place, 'nginx.conf'),
      `daemon off; pid ${place}/pid; error_log stderr error; worker_processes 1;
       events { worker_connections 1024; }
       http { access_log off; client_body_temp_path ${place}/b; proxy_temp_path ${place}/p;
         fastcgi_temp_path ${place}/f; uwsgi_temp_path ${place}/u; scgi_temp_path ${place}/s;
         server { listen 127.0.0.1:${port}; root ${place}; } }`,
    );
    await serve(port, '/usr/sbin/nginx', '-c', join(place, 'nginx.conf'), '-p', place, '-e', 'stderr');
    const near = await tunnelTo(port);
    const url = `http://127.0.0.1:${near}`;
    const said = await output('wrk', '-t', '1', '-c', '100', '-d', '3s', `${url}/small`);
    expect(said).toMatch(/[1-9]\d* requests in/);
    expect(said).not.toMatch(/Socket errors|Non-2xx/);
    const bodies = await Promise.all(
      [1, 2, 3].map(async () => new Uint8Array(await (await fetch(`${url}/large`)).arrayBuffer())),
    );
    expect(bodies.map(sha256)).toEqual(bodies.map(() => sha256(large)));
  });
});

describe('iperf3', () => {
  needsProgram('iperf3');

  test.each([
    ['from the client', []],
    ['from the server', ['-R']],
    ['both ways', ['--bidir']],
  ])('four connections, %s', async (_name, flags) => {
    const port = await freePort();
    await serve(port, 'iperf3', '-s', '-p', `${port}`);
    const near = await tunnelTo(port);
    const args = ['-c', '127.0.0.1', '-p', `${near}`, '-P', '4', '-t', '2', '-J', ...flags];
    const { end, error } = JSON.parse(await output('iperf3', ...args)) as {
      error?: string;
      end: { sum_received: { bytes: number } };
    };
    expect(error).toBeUndefined();
    expect(end.sum_received.bytes).toBeGreaterThan(0);
  });
});

describe('ssh', () => {
  needsProgram('ssh');

  test('scp of 100 MB, and a command that reads to the end of its input', async () => {
    const place = folder();
    const port = await freePort();
    const key = (name: string): Promise<string> =>
      output('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', join(place, name));
    await Promise.all(['host', 'user'].map(key));
    writeFileSync(join(place, 'authorized'), readFileSync(join(place, 'user.pub')));
    const { username } = userInfo();
    // The unprivileged process of sshd needs this folder. Debian's service for sshd would make it.
    if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
    writeFileSync(
      join(place, 'sshd_config'),
      `Port ${port}\nListenAddress 127.0.0.1\nHostKey ${place}/host\nAuthorizedKeysFile ${place}/authorized\n` +
        `StrictModes no\nPermitRootLogin yes\nUsePAM no\nPasswordAuthentication no\nPidFile none\n` +
        `Subsystem sftp internal-sftp\n`,
    );
    await serve(port, '/usr/sbin/sshd', '-D', '-e', '-f', join(place, 'sshd_config'));
    const near = await tunnelTo(port);
    const options = ['-F', 'none', '-i', join(place, 'user'), '-o', 'StrictHostKeyChecking=no'];
    const quiet = ['-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', '-o', 'BatchMode=yes'];
    const sent = randomBytes(100_000_000);
    writeFileSync(join(place, 'sent'), sent);
    const remote = `${username}@127.0.0.1`;
    const copy = (from: string, to: string): Promise<string> =>
      output('scp', ...options, ...quiet, '-P', `${near}`, from, to);
    await copy(join(place, 'sent'), `${remote}:${place}/there`);
    expect(sha256(readFileSync(join(place, 'there')))).toBe(sha256(sent));
    await copy(`${remote}:${place}/there`, join(place, 'back'));
    expect(sha256(readFileSync(join(place, 'back')))).toBe(sha256(sent));
    const ssh = ['ssh', ...options, ...quiet, '-p', `${near}`, remote, 'wc -c'].join(' ');
    expect((await output('sh', '-c', `head -c 3000000 /dev/zero | ${ssh}`)).trim()).toBe('3000000');
  });
});
