/** The counters pages that this process has open, as paths. For the tests of this folder. */
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
