/**
 * Finds the processes that have counters pages, and reads the pages through the open descriptors under
 * /proc/PID/fd. The kernel lets a user access only the user's own processes (and root all processes). The
 * pages of a dead process disappear with it. Reading costs the other process nothing; that process may even
 * be stopped. `rdma-rpc top` uses it.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
} from 'node:fs';
import { systemNs } from '../clock.ts';
import {
  type ContextCounters,
  contextIn,
  frontBytesMax,
  pageBytesMax,
  pageHeadBytes,
  pageVersion,
  versionOf,
} from './page.ts';

export interface ProcessCounters {
  readonly pid: number;
  /** The command line, for display. */
  readonly command: string;
  /** The kernel's letter for the state: R, S, D, T (stopped), Z … */
  readonly state: string;
  /** Start time in clock ticks since boot. A later process with the same pid has a different start time. */
  readonly startTicks: number;
  /** CPU time of all threads of the process since its start. */
  readonly cpuMs: number;
  /** Resident memory, in bytes. */
  readonly rssBytes: number;
  /** Time of this reading, in nanoseconds on the clock of `process.hrtime`. */
  readonly atNs: number;
  /** One entry for each fabric that a thread uses. */
  readonly contexts: readonly ContextCounters[];
}

const linkName = /^\/memfd:rdma-rpc-counters( \(deleted\))?$/;
const clockTicksMs = 10;

/** A page that is open for reading. */
export interface OpenPage {
  readonly size: number;
  readonly ino: number;
  /** Throws an Error when the file does not have these bytes. */
  read(at: number, bytes: number): Uint8Array;
}

/**
 * Opens a page. The link may have changed since it was read, so the opened file is checked again. Returns
 * undefined when the file cannot be a page.
 */
export function withPage<T>(path: string, action: (page: OpenPage) => T): T | undefined {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const { size, ino } = fstatSync(file);
    if (size === 0 || size > pageBytesMax) return undefined;
    return action({
      size,
      ino,
      read(at, count) {
        const bytes = new Uint8Array(count);
        for (let length = 0; length < count; ) {
          const read = readSync(file, bytes, length, count - length, at + length);
          if (read === 0) throw new Error(`${path} ends before it should`);
          length += read;
        }
        return bytes;
      },
    });
  } finally {
    closeSync(file);
  }
}

function readPage(path: string): ContextCounters | undefined {
  return withPage(path, ({ size, ino, read }) => contextIn(read(0, Math.min(size, frontBytesMax)), ino));
}

/** Returns undefined for an entry that no longer exists, or that belongs to another user. */
export function orNone<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

/**
 * Returns the paths of a process's pages. Throws the system's error when the descriptors of the process
 * cannot be listed.
 */
function pagesOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder)
    .map((name) => `${folder}/${name}`)
    .filter((path) => linkName.test(orNone(() => readlinkSync(path)) ?? ''));
}

/** Returns the pids of the processes that this user may read and that have pages, in order. */
export function processesWithCounters(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => (orNone(() => pagesOf(pid)) ?? []).length > 0)
    .sort((one, other) => one - other);
}

/**
 * Returns the paths of a process's pages, and its command line. Throws an Error with an explanation when the
 * process does not exist or cannot be read.
 */
export function pagesAndCommand(pid: number): { readonly pages: string[]; readonly command: string } {
  try {
    const command = orNone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '';
    return { pages: pagesOf(pid), command: command.split('\0').join(' ').trim() };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(
      code === 'EACCES' || code === 'EPERM'
        ? `process ${pid} cannot be read: it is of another user, or has rights that this one has not; run this as that user, or as root`
        : `process ${pid} does not exist`,
      { cause },
    );
  }
}

/** Returns the reason why the pages of a process cannot be read. */
export function whyNoPage(pid: number, pages: readonly string[]): string {
  const other = pages
    .map((path) => orNone(() => withPage(path, ({ read }) => versionOf(read(0, pageHeadBytes)))))
    .find((version) => version !== undefined && version !== pageVersion);
  if (other !== undefined)
    return `process ${pid} has counters of version ${other}, and this rdma-rpc reads version ${pageVersion}; use the release of rdma-rpc that the process uses`;
  return `process ${pid} has no counters of rdma-rpc: it has no connection and no server now, hides them (countersPage), or is another program`;
}

/**
 * Throws an Error with an explanation when the process does not exist, cannot be read, or has no counters.
 */
export function readCounters(pid: number): ProcessCounters {
  const { pages, command } = pagesAndCommand(pid);
  const contexts = pages
    .map((path) => orNone(() => readPage(path)))
    .filter((context) => context !== undefined);
  const stat = orNone(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (stat === undefined) throw new Error(`process ${pid} does not exist`);
  if (contexts.length === 0) throw new Error(whyNoPage(pid, pages));
  // Search the last parenthesis, because the name in parentheses may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const status = orNone(() => readFileSync(`/proc/${pid}/status`, 'utf8')) ?? '';
  return {
    pid,
    command,
    state: fields[0] ?? '?',
    startTicks: Number(fields[19]),
    cpuMs: (Number(fields[11]) + Number(fields[12])) * clockTicksMs,
    rssBytes: 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0),
    atNs: systemNs(),
    contexts,
  };
}
