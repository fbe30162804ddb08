/**
 * Sends random messages of every type of the corpus through protobuf-es and protobufjs and back
 * (compare.mjs). Each process handles a few hundred files, and two processes run at a time.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { linkPackage } from './compile.mjs';

const program = join(dirname(fileURLToPath(import.meta.url)), 'compare.mjs');
const filesPerProcess = 200;

/** Returns the empty result. */
const nothing = () => ({
  ...{ types: 0, messages: 0, json: 0, refused: 0, endless: 0, known: 0, damaged: 0, accepted: 0 },
  failures: 0,
  shown: [],
});

/** Resolves to the result of one process, or to the reason why it ended. */
function compare(job) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--max-old-space-size=3072', program, job], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let why = '';
    child.stdout.on('data', (data) => (out += data));
    child.stderr.on('data', (data) => (why += data));
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(out));
      else resolve({ ...nothing(), failures: 1, shown: [`${job}: ${why.slice(-800)}`] });
    });
  });
}

/** Compares the generated code of all groups. `groups` has the names of folders in `output`. */
export async function compareAll(output, groups) {
  const jobs = [];
  for (const group of groups) {
    const from = join(output, group);
    const to = join(output, 'compared', group);
    const paths = globSync('**/*.rdma.ts', { cwd: from }).sort();
    mkdirSync(to, { recursive: true });
    for (let i = 0; i < paths.length; i += filesPerProcess) {
      const job = join(to, `job-${i}.json`);
      const own = join(to, `${i}`);
      writeFileSync(job, JSON.stringify({ from, to: own, paths: paths.slice(i, i + filesPerProcess) }));
      jobs.push(job);
    }
  }
  linkPackage(join(output, 'compared'));
  const sum = nothing();
  const work = async () => {
    for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) {
      const { shown, ...counts } = await compare(job);
      for (const key of Object.keys(counts)) sum[key] += counts[key];
      sum.shown.push(...shown);
    }
  };
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, work));
  return sum;
}
