/**
 * Finds the process for `rdma-rpc top` and `trace`: by a PID, by an address of this machine at which it
 * listens, or because it is the only one.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { basename, dirname } from 'node:path';
import { parseAddress, unmapped } from '../../runtime/control/socket/address.ts';
import { orNone, processesWithCounters, readCounters } from '../../runtime/counters/processes.ts';

const listening = '0A';
const listeningUnix = '00010000';

/**
 * Returns whether a socket is bound to the path. The socket may also have been created under another name in
 * the same folder and then renamed (native/binding/unix_socket.h).
 */
function bound(found: string, path: string): boolean {
  const hidden = `${dirname(path)}/.${basename(path)}.`;
  return found === path || (found.startsWith(hidden) && /^[0-9a-f]+$/.test(found.slice(hidden.length)));
}

/** Returns the inodes of the sockets that listen on a TCP port of this machine. */
function portInodes(port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => {
    // The second file does not exist without IPv6.
    const lines = (orNone(() => readFileSync(file, 'utf8')) ?? '').trim().split('\n').slice(1);
    const fields = lines.map((line) => line.trim().split(/\s+/));
    return fields
      .filter(([, local = '', , state]) => state === listening && local.endsWith(`:${hex}`))
      .map((line) => line[9]!);
  });
}

function pathInodes(path: string): string[] {
  const fields = readFileSync('/proc/net/unix', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  return fields
    .filter((line) => line[3] === listeningUnix && bound(line.slice(7).join(' '), path))
    .map((line) => line[6]!);
}

function holds(pid: number, inodes: readonly string[]): boolean {
  const folder = `/proc/${pid}/fd`;
  return (orNone(() => readdirSync(folder)) ?? []).some((name) => {
    const link = orNone(() => readlinkSync(`${folder}/${name}`)) ?? '';
    const inode = /^socket:\[(\d+)\]$/.exec(link)?.[1];
    return inode !== undefined && inodes.includes(inode);
  });
}

/** Returns whether the host is this machine. A port of another machine says nothing about local processes. */
function isHere(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost' || host === hostname();
  const here = new BlockList();
  here.addSubnet('127.0.0.0', 8);
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  for (const address of ['0.0.0.0', '::', '::1', ...own.map((each) => each.address)])
    here.addAddress(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const address = unmapped(host).replace(/%.*$/, '');
  return here.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function inodesAt(target: string): string[] {
  const address = orNone(() => parseAddress(target.replace(/^unix:\/\//, 'unix:')));
  if (address === undefined)
    throw new TypeError(`${target} is neither a PID nor an address; give 1234, host:port or unix:/path`);
  if (address.kind === 'unix') return pathInodes(address.path);
  return isHere(address.host) ? portInodes(address.port) : [];
}

function listenerAt(target: string): number {
  const inodes = inodesAt(target);
  const found = processesWithCounters().find((pid) => holds(pid, inodes));
  if (found !== undefined) return found;
  throw new Error(
    `no process of this user, on this machine, listens at ${target} with rdma-rpc; run the command on the machine of the process`,
  );
}

/** Throws an Error with a sentence when no process is found, and a TypeError for an invalid target. */
export function pidOf(target: string | undefined): number {
  if (target !== undefined) return /^\d{1,9}$/.test(target) ? Number(target) : listenerAt(target);
  const pids = processesWithCounters();
  if (pids.length === 1) return pids[0]!;
  if (pids.length === 0)
    throw new Error(
      'no process of this user has a connection or a server of rdma-rpc now, so there are no counters',
    );
  const names = pids.map((pid) => `${pid} (${orNone(() => readCounters(pid).command) ?? 'has ended'})`);
  throw new Error(`several processes have counters of rdma-rpc, name one: ${names.join(', ')}`);
}
