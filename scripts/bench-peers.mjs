/**
 * Installs once the frameworks with which the benchmarks compare (bench/peers). scripts/bench.mjs and
 * scripts/bench-stream.mjs use this file.
 */
import { run } from './command.mjs';
import { step } from './step.mjs';

/** Resolves to false when the installation failed; the reason has then been printed. */
export const succeeded = (promise) =>
  promise.then(
    () => true,
    () => false,
  );

export async function installPeers() {
  const peers = step({
    name: 'bench-peers',
    title: 'the compared frameworks (npm)',
    inputs: ['bench/peers/package.json', 'bench/peers/package-lock.json'],
    outputs: ['bench/peers/node_modules/@grpc/grpc-js/package.json'],
    action: () => run(['npm', 'ci', '--prefix', 'bench/peers', '--ignore-scripts']),
  });
  if (!(await succeeded(peers))) console.error('! their rows will be missing');
}
