/**
 * Reads how many SENDs have found no receive, as the drivers of RDMA devices count them.
 */
import { join } from 'node:path';

/** The names of the counters of soft-RoCE on either side, and of mlx5. */
const names = ['rcvd_rnr_err', 'send_rnr_err', 'rnr_nak_retry_err', 'out_of_buffer'];

interface Files {
  readdirSync(path: string): string[];
  readFileSync(path: string, encoding: 'utf8'): string;
}

/**
 * Returns the sum over all devices under `root` and all their ports. Returns undefined when no driver counts
 * them.
 */
export function notReady(root: string, files: Files): number | undefined {
  const counts: number[] = [];
  for (const device of files.readdirSync(root)) {
    for (const port of files.readdirSync(join(root, device, 'ports'))) {
      for (const name of names) {
        try {
          counts.push(
            Number(files.readFileSync(join(root, device, 'ports', port, 'hw_counters', name), 'utf8')),
          );
        } catch {
          // Another driver has other counters.
        }
      }
    }
  }
  return counts.length === 0 ? undefined : counts.reduce((sum, each) => sum + each, 0);
}
