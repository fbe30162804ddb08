/**
 * The project's configuration of vitest, with one bug planted in the sources that a test loads.
 * typescript.mjs passes the file and the text to replace in RDMA_RPC_PLANTED.
 */
import { readFileSync } from 'node:fs';
import { defineConfig, mergeConfig, type Plugin } from 'vitest/config';
import base from '../../vitest.config.ts';

interface Planted {
  /** The absolute path of the file. */
  readonly path: string;
  readonly from: string;
  readonly to: string;
}

const planted = JSON.parse(process.env.RDMA_RPC_PLANTED ?? 'null') as Planted | null;

const plugin: Plugin = {
  name: 'planted bug',
  enforce: 'pre',
  load(id) {
    if (planted === null || id !== planted.path) return undefined;
    return readFileSync(id, 'utf8').replace(planted.from, () => planted.to);
  },
};

export default mergeConfig(
  base,
  // A bug that makes its test hang counts as not found.
  defineConfig({
    plugins: [plugin],
    test: { testTimeout: 30_000, hookTimeout: 30_000, env: { RDMA_RPC_UNTIL_MS: '20000' } },
  }),
);
