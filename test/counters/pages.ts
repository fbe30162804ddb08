/**
 * Finds the paths of the counters pages that this process has open. The tests of this folder use it.
 */
import { readdirSync, readlinkSync } from 'node:fs';

export const pages = (): string[] =>
  readdirSync('/proc/self/fd')
    .map((name) => `/proc/self/fd/${name}`)
    .filter((path) => {
      try {
        return readlinkSync(path).includes('rdma-rpc-counters');
      } catch {
        return false;
      }
    });
