/**
 * The path of a unix socket on which a server listens. The only files that this class removes are a socket
 * whose owner is dead and, in the end, its own files. A lock file beside the path decides between servers
 * that start at the same time. listener.ts uses this file.
 */
import cluster from 'node:cluster';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import type { OptionRules } from '../../core/options.ts';
import * as limits from '../../limits.ts';
import { type FileLock, loadNative } from '../../native/native.ts';
import { unixPathBytes } from './address.ts';
import { socketDial } from './dial.ts';

/**
 * Permissions and owner of the socket file. A process that may write to the file may connect to the server.
 */
export interface SocketFile {
  /** Permissions of the file, such as `0o660`. */
  mode?: number;
  /**
   * Numeric ids of owner and group. Only root can set another owner. The group must be a group of this
   * process.
   */
  uid?: number;
  gid?: number;
}

export const socketRules: OptionRules = {
  mode: { kind: 'integer', range: limits.socketMode, hint: '(0o777), such as 0o660' },
  uid: { kind: 'integer', range: limits.userId },
  gid: { kind: 'integer', range: limits.userId },
};

/**
 * The end of the error text for a worker of node:cluster. Lock, socket file and permissions belong to one
 * server. Node could share the socket among workers only under the path to which it is bound, and this path
 * is temporary.
 */
const clusterHint =
  '. Workers of node:cluster (PM2) cannot share a unix path: listen on host:port, give each worker a path of its own, or use serveWorkers of rdma-rpc/workers instead of processes';

type SystemError = NodeJS.ErrnoException;

function failed(code: string, path: string, why: string): SystemError {
  return Object.assign(new Error(`listen unix:${path}: ${code}: ${why}`), { code });
}

function fileAt(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

const isSame = (a: Stats | undefined, b: Stats | undefined): boolean =>
  a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;

function kindOf(file: Stats): string {
  if (file.isFile()) return 'an ordinary file';
  if (file.isDirectory()) return 'a directory';
  return file.isSymbolicLink() ? 'a symbolic link' : 'no socket';
}

/** Returns the holder of the lock, which the lock file names. */
function holderOf(lockPath: string): string {
  try {
    return /^rdma-rpc (process \d+)\n$/.exec(readFileSync(lockPath, 'latin1'))?.[1] ?? 'another process';
  } catch {
    return 'another process';
  }
}

function lock(path: string): FileLock {
  const lockPath = `${path}.lock`;
  try {
    return loadNative().lockFile(lockPath, `process ${process.pid}`);
  } catch (cause) {
    const { code, message } = cause as SystemError;
    switch (code) {
      case 'EWOULDBLOCK':
        throw failed(
          'EADDRINUSE',
          path,
          `${holderOf(lockPath)} listens at this path (it holds the lock ${lockPath})${cluster.isWorker ? clusterHint : ''}`,
        );
      case 'EEXIST':
        throw failed(
          'EEXIST',
          path,
          `${lockPath} is not a lock of rdma-rpc and is not replaced; use another path`,
        );
      case 'ENOENT':
      case 'ENOTDIR':
        throw failed(code, path, `there is no folder ${dirname(path)}`);
      case undefined:
        throw cause;
      default:
        throw failed(code, path, `the lock ${lockPath} cannot be taken: ${message}`);
    }
  }
}

/**
 * Returns whether a socket is bound at the path, according to the text of /proc/net/unix. It distinguishes an
 * abandoned socket from a bound socket whose owner does not listen yet. Both refuse connections. A relative
 * path in the table counts as `path` when the file name is the same.
 */
export function isBound(path: string, table: string): boolean {
  const whole = resolve(path);
  return table.split('\n').some((line) => {
    const bound = /^[0-9a-f]+: (?:[0-9A-F]+ ){5} *\d+ (.+)$/i.exec(line)?.[1];
    if (bound === undefined || bound.startsWith('@')) return false;
    return isAbsolute(bound) ? resolve(bound) === whole : basename(bound) === basename(whole);
  });
}

function boundSockets(): string {
  try {
    return readFileSync('/proc/net/unix', 'latin1');
  } catch {
    return '';
  }
}

/** Returns '' when the socket's owner is dead, otherwise why the owner may be alive. */
async function whyNotDead(path: string): Promise<string> {
  try {
    const probe = await socketDial({ kind: 'unix', path })(new AbortController().signal);
    probe.destroy();
    return 'another process listens there';
  } catch (error) {
    const { code } = error as SystemError;
    if (code === 'ENOENT') return '';
    if (code !== 'ECONNREFUSED') return `its socket answers with ${code}`;
    return isBound(path, boundSockets()) ? 'another process has its socket there' : '';
  }
}

/** Removes an abandoned socket from the path. Throws when the file at the path is not an abandoned socket. */
async function clear(path: string): Promise<void> {
  const file = fileAt(path);
  if (file === undefined) return;
  if (!file.isSocket()) {
    throw failed('EEXIST', path, `${kindOf(file)} exists and is not replaced; remove it or use another path`);
  }
  const why = await whyNotDead(path);
  if (why !== '') throw failed('EADDRINUSE', path, why);
  // Remove the file right after the check. A file that another process has created in the meantime stays, and
  // makes the link fail later.
  if (isSame(fileAt(path), file)) unlinkSync(path);
}

/**
 * Returns a temporary path beside `path` with a similar name. The result is short enough for a socket path
 * even when `more` bytes are added.
 */
function temporary(path: string, more: number): string {
  const folder = dirname(path);
  const random = `.${randomBytes(4).toString('hex')}`;
  for (const name of [`.${basename(path)}${random}`, random]) {
    const found = join(folder, name);
    if (Buffer.byteLength(found) + more <= unixPathBytes) return found;
  }
  const rest = unixPathBytes - random.length - 1 - more;
  throw failed('ENAMETOOLONG', path, `its folder has a name longer than ${rest} bytes; take a shorter one`);
}

/**
 * Gives a bound socket its public path. Never replaces a file that another process has created there in the
 * meantime.
 */
function rename(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const { code } = error as SystemError;
    if (code === 'EEXIST') throw failed('EADDRINUSE', to, 'another process has just made a file there');
    // This file system does not support links.
    if (fileAt(to) !== undefined) throw error;
    renameSync(from, to);
    return;
  }
  unlinkSync(from);
}

/** Sets owner and permissions as requested. -1 leaves an owner unchanged. */
function own(path: string, shown: string, { mode, uid = -1, gid = -1 }: SocketFile): void {
  try {
    if (uid !== -1 || gid !== -1) chownSync(path, uid, gid);
    // Set the mode after the owner, because a change of the owner may remove permission bits.
    if (mode !== undefined) chmodSync(path, mode);
  } catch (error) {
    const { code = 'EIO' } = error as SystemError;
    throw failed(
      code,
      shown,
      'its mode or owner cannot be set (option socket: only root can set another uid, and gid must be a group of this process)',
    );
  }
}

/**
 * Listens in a folder that only this user can enter, so that no other user connects before the permissions of
 * the socket are set.
 */
async function listenHidden(
  path: string,
  listenAt: (path: string) => Promise<void>,
  file: SocketFile,
  then: (bound: string) => void,
): Promise<void> {
  // The name is unique among the listeners of this process.
  const name = randomBytes(4).toString('hex');
  const folder = temporary(path, name.length + 1);
  mkdirSync(folder, 0o700);
  // The umask may have removed this user's own permissions.
  chmodSync(folder, 0o700);
  const bound = join(folder, name);
  try {
    await listenAt(bound);
    own(bound, path, file);
    then(bound);
  } finally {
    if (fileAt(bound) !== undefined) unlinkSync(bound);
    rmdirSync(folder);
  }
}

export class UnixPath {
  readonly #path: string;
  readonly #lock: FileLock;
  #made: Stats | undefined;

  private constructor(path: string, lock: FileLock) {
    this.#path = resolve(path); // absolute, because the working directory may change
    this.#lock = lock;
  }

  /**
   * Takes the path for a new socket. `listenAt` must listen on the temporary path that it is given. The path
   * is temporary, because closing a socket removes the file at the path to which the socket was bound, and by
   * then that file could be another server's socket. Throws an error with the reason and the code EADDRINUSE
   * or another code. All files are then as before.
   */
  static async take(
    path: string,
    listenAt: (path: string) => Promise<void>,
    file: SocketFile = {},
  ): Promise<UnixPath> {
    const taken = new UnixPath(path, lock(path));
    try {
      await clear(path);
      const name = (bound: string): void => {
        taken.#made = fileAt(bound);
        rename(bound, path);
      };
      if (Object.values(file).some((value) => value !== undefined)) {
        await listenHidden(path, listenAt, file, name);
      } else {
        const bound = temporary(path, 0);
        await listenAt(bound);
        name(bound);
      }
    } catch (error) {
      taken.release();
      throw error;
    }
    return taken;
  }

  /**
   * Removes the socket and the lock, if they are still the files that this object created. A second call does
   * nothing.
   */
  release(): void {
    const made = this.#made;
    this.#made = undefined;
    try {
      if (isSame(fileAt(this.#path), made)) unlinkSync(this.#path);
    } catch {
      // The folder is no longer writable. The next server will find an abandoned socket.
    }
    loadNative().unlockFile(this.#lock);
  }
}
