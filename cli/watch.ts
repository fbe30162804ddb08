/** Watches files and repeats a task when one changes, one run at a time. Ends at SIGINT or SIGTERM. */
import { watch } from '#chokidar';

export interface WatchOptions {
  /** Files to watch at the start, absolute. */
  readonly initial: readonly string[];
  /** Directories in which every .proto is watched. */
  readonly directories: readonly string[];
  /** Does the work; returns what to watch from now on, or undefined for no change. */
  readonly onChange: () => Promise<readonly string[] | undefined>;
}

/**
 * Editors empty a file before they write it, and save several files at once: the task waits until nothing has
 * changed for this time.
 */
const quietMs = 50;

export async function watchFiles(options: WatchOptions): Promise<void> {
  const watcher = watch([...options.initial, ...options.directories], {
    ignoreInitial: true,
    ignored: (path, stats) => stats?.isFile() === true && !path.endsWith('.proto'),
  });
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve, reject) => {
    let last = Promise.resolve();
    const run = async (): Promise<void> => {
      watcher.add([...((await options.onChange()) ?? [])]);
    };
    watcher.on('all', () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        last = last.then(run).catch(reject);
      }, quietMs);
    });
    watcher.on('error', reject);
    watcher.on('ready', () => console.log('watching for changes'));
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  clearTimeout(timer);
  await watcher.close();
}
