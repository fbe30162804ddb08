/**
 * Bundles an application into one file by rollup and by webpack, as ESM and as CommonJS, as
 * docs/guides/bundlers-and-runtimes.md describes. main.mjs calls it.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Returns the bundlers that are installed in `cache`. Each function gets the folder, the format, and whether
 * the package is left out of the bundle. The function resolves when the bundle of `files` has been written.
 */
export async function bundlers(cache, [main, worker]) {
  const entries = { main, worker };
  const require = createRequire(join(cache, 'index.js'));
  const load = (name) => import(pathToFileURL(require.resolve(name)).href);
  const { rollup } = await load('rollup');
  const { nodeResolve } = await load('@rollup/plugin-node-resolve');
  const { default: webpack } = await load('webpack');

  async function withRollup(folder, format, external) {
    const bundle = await rollup({
      input: entries,
      plugins: [nodeResolve({ exportConditions: ['node'] })],
      external: external ? [/^rdma-rpc/] : [],
      onwarn: () => undefined,
    });
    await bundle.write({
      dir: folder,
      format,
      entryFileNames: `[name].${extension(format)}`,
      chunkFileNames: `[name].${extension(format)}`,
    });
    await bundle.close();
  }

  function withWebpack(folder, format, external) {
    const module = format === 'esm';
    const options = {
      mode: 'production',
      target: 'node20',
      context: dirname(main),
      entry: entries,
      externals: external ? [/^rdma-rpc/] : [],
      externalsType: module ? 'module' : 'commonjs',
      experiments: { outputModule: module },
      output: {
        path: folder,
        filename: `[name].${extension(format)}`,
        module,
        chunkFormat: format === 'esm' ? 'module' : 'commonjs',
      },
    };
    return new Promise((resolve, reject) => {
      webpack(options, (error, stats) => {
        if (error !== null || stats.hasErrors()) reject(error ?? new Error(stats.toString('errors-only')));
        else resolve();
      });
    });
  }
  return { rollup: withRollup, webpack: withWebpack };
}

export const extension = (format) => (format === 'esm' ? 'mjs' : 'cjs');
