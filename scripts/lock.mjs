/**
 * A lock between processes: one set-up of a checkout at a time (setup.mjs). Two set-ups at once would write
 * the same object files, and the addon would be broken.
 */
import { existsSync, mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const REFRESH_MS = 1000;
/** A holder that has not refreshed its file for this long was killed. */
const STALE_MS = 15_000;
const LOOK_MS = 250;

function take(path) {
  try {
    writeFileSync(path, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Runs `action` while no other process runs one under the same `path`. Calls `onWait` once when it has to
 * wait. The age of the file shows whether its holder lives. A process id cannot show it, because the holder
 * may be in another container.
 */
export async function locked(path, action, { onWait = () => undefined, staleMs = STALE_MS } = {}) {
  mkdirSync(dirname(path), { recursive: true });
  for (let waited = false; !take(path); waited = true) {
    if (!waited) onWait();
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat !== undefined && Date.now() - stat.mtimeMs > staleMs) rmSync(path, { force: true });
    else await sleep(LOOK_MS);
  }
  const refresh = setInterval(() => {
    // The file is gone if this process was stopped for so long that another process has taken over the lock.
    if (existsSync(path)) utimesSync(path, new Date(), new Date());
  }, REFRESH_MS);
  const release = () => rmSync(path, { force: true });
  process.once('exit', release);
  try {
    return await action();
  } finally {
    clearInterval(refresh);
    process.off('exit', release);
    release();
  }
}
