/**
 * Watches files and repeats a task when a file changes, one run at a time. It ends at SIGINT or SIGTERM.
 */
import { watch } from '#chokidar';

export interface WatchOptions {
  /** The files to watch at the start, as absolute paths. */
  readonly initial: readonly string[];
  /** Directories in which every .proto is watched. */
  readonly directories: readonly string[];
  /** Does the work, and returns the files to watch from now on, or undefined for no change. */
  readonly onChange: () => Promise<readonly string[] | undefined>;
}

/**
 * Editors empty a file before they write it, and save several files at once. Therefore the task waits until
 * no file has changed for this time, in milliseconds.
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
