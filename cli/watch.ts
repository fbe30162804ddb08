/** Watches files and repeats a task when one changes, one run at a time. Ends at SIGINT or SIGTERM. */
import { watch } from 'chokidar';

export interface WatchOptions {
  /** Files to begin with, absolute. */
  readonly initial: readonly string[];
  /** Directories in which every .proto counts. */
  readonly directories: readonly string[];
  /** Does the work; returns what to watch from now on, or undefined to leave that as it is. */
  readonly onChange: () => Promise<readonly string[] | undefined>;
}

export async function watchFiles(options: WatchOptions): Promise<void> {
  const watcher = watch([...options.initial, ...options.directories], {
    ignoreInitial: true,
    ignored: (path, stats) => stats?.isFile() === true && !path.endsWith('.proto'),
  });
  let running = false;
  let again = false;
  const run = async (): Promise<void> => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      watcher.add([...((await options.onChange()) ?? [])]);
    } while (again);
    running = false;
  };
  await new Promise<void>((resolve, reject) => {
    watcher.on('all', () => run().catch(reject));
    watcher.on('error', reject);
    watcher.on('ready', () => console.log('watching for changes'));
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  await watcher.close();
}
