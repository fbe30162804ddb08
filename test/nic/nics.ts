/**
 * Builds the library with simulated NICs (native/test/nic), and runs a scenario of program.ts in a process
 * with it. No RDMA device is needed.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compiled, oneCopy } from '../runtime/process/processes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const directory = 'build/native';
const library = join(root, directory, 'librdma_rpc_test_nics.so');

function ended(program: string, args: readonly string[], env = process.env): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    child.stdout.on('data', (data) => {
      out += data;
    });
    child.stderr.on('data', (data) => {
      err += data;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve(out);
      else
        reject(new Error(`${program} ended with ${code ?? signal}: ${out.slice(-2000)}${err.slice(-4000)}`));
    });
  });
}

export async function buildNics(): Promise<void> {
  await ended('cmake', ['-S', '.', '-B', directory, '-DRDMA_RPC_ADDON=ON']);
  await ended('cmake', ['--build', directory, '--parallel', '2', '--target', 'rdma_rpc_test_nics']);
}

/**
 * Runs a scenario in a process with simulated NICs. `nics` is in the form of
 * native/test/nic/preload/preload.cc. Resolves to the result of the scenario.
 */
export async function runOnNics(scenario: string, nics: string): Promise<Record<string, unknown>> {
  const env = {
    ...process.env,
    LD_PRELOAD: library,
    RDMA_RPC_TEST_NICS: nics,
    RDMA_RPC_TEST_DIST: join(root, 'dist'),
  };
  const out = await ended(process.execPath, [...oneCopy, compiled('program', 'nic'), scenario], env);
  return JSON.parse(out.trim().split('\n').at(-1)!) as Record<string, unknown>;
}
