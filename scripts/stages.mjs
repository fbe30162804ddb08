/**
 * Runs the steps of check.mjs. A stage is a list of sequences, which run at the same time. A sequence is a
 * list of steps, which run one after the other. A failed step does not stop the other steps. A step does not
 * count as passed when it could not run and ended with NOT_RUN, or when no time was left for it.
 */
import { run } from './command.mjs';
import { NOT_RUN, reason, record, recorded } from './results.mjs';

const STEP_LIMIT_MS = 60 * 60_000;
const LAST_LINES = 5;
const LAST_CHARACTERS = 600;

/** Returns a step that counts as one check, which has passed when its command ends with 0. */
export const check = (name, ...command) => ({ name, command, counts: true });
/**
 * Returns a step that counts and records its tests itself. Its field `otherwise` may name a step that runs
 * instead when this step could not run.
 */
export const suite = (name, ...command) => ({ name, command });
/**
 * Returns a step that only does work of later steps in advance. The later steps repeat the work, and they
 * report its errors.
 */
export const ahead = (name, ...command) => ({ name, command, ahead: true });

/**
 * Returns `list`, rotated by a number that depends on the commit's `hash` (hexadecimal digits). The rotation
 * is the same for the same commit, so that a run can be reproduced.
 */
export function turned(list, hash) {
  const first = Number.parseInt(hash.slice(0, 8) || '0', 16) % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

const minutes = (ms) => `${(ms / 60_000).toFixed(1)} min`;

/** Runs a step's command. With `live`, its output is passed on as it arrives, instead of at the end. */
async function outcome({ name, command }, live, limitMs) {
  console.log(`\n== ${name}: ${command.join(' ')}${live ? '' : ' …'}`);
  const ended = await run(command, { live, limitMs, env: { RDMA_RPC_STEP: name } }).then(
    (output) => ({ code: 0, output }),
    ({ code, output, message }) => ({ code, output, message }),
  );
  if (!live) console.log(`\n== ${name}: ${command.join(' ')}\n${ended.output}`);
  return ended;
}

/**
 * Returns the last lines of a failed step's output for the summary, because a log may keep only its last
 * lines.
 */
function lastLines(output) {
  const lines = output.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '')
    .slice(-LAST_LINES)
    .join(' | ')
    .slice(-LAST_CHARACTERS);
}

/** Records that no time was left for a step. Without this record the step would look as if it had failed. */
const givesWay = (step, why) => step.ahead || record(step.name, { whyNot: [why] });

async function runStep(step, stage) {
  const { live, took, time } = stage;
  const begin = performance.now();
  if (begin > time.lastBegin) return givesWay(step, `no time was left: ${time.words}`);
  const limitMs = Math.ceil(Math.max(1, Math.min(STEP_LIMIT_MS, time.end - begin)));
  const { code, output, message } = await outcome(step, live, limitMs);
  took.push(`${step.name} ${minutes(performance.now() - begin)}`);
  if (performance.now() >= time.end) return givesWay(step, `it was stopped: ${time.words}`);
  if (step.ahead) return;
  if (code === NOT_RUN && step.otherwise !== undefined) await runStep(step.otherwise, stage);
  if (step.counts && code === 0) record(step.name, { passed: 1 });
  if (step.counts && code === NOT_RUN) record(step.name, { whyNot: [reason(output)] });
  // A suite that failed without recording a failure must not be forgotten.
  const explained = recorded().some((result) => result.step === step.name && result.failed > 0);
  if (code !== 0 && code !== NOT_RUN && !explained)
    record(step.name, { failed: 1, note: `${message}: ${lastLines(output)}` });
}

async function runSequence(steps, stage) {
  for (const step of steps) await runStep(step, stage);
}

/**
 * Resolves to a text for each step, in the order in which the steps ended, with its name and its duration.
 * After `beginMs` from now no step begins, and after `endMs` the running steps are stopped. Otherwise CI
 * would stop this process, and the results of the other steps would be lost.
 */
export async function runStages(stages, { beginMs = Infinity, endMs = Infinity } = {}) {
  const took = [];
  const now = performance.now();
  const words = `no step begins after ${minutes(beginMs)}, and none goes on after ${minutes(endMs)}`;
  const time = { lastBegin: now + beginMs, end: now + endMs, words };
  for (const sequences of stages) {
    const stage = { live: sequences.length === 1, took, time };
    await Promise.all(sequences.map((steps) => runSequence(steps, stage)));
  }
  return took;
}
