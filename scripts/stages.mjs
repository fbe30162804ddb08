/**
 * Runs the steps of check.mjs. A stage is a list of lanes, which run side by side; a lane is a list of steps, one after the other. A step that fails
 * leaves the others alone; a step that could not run, and ended with NOT_RUN, is never counted as passed.
 */
import { run } from './command.mjs';
import { NOT_RUN, reason, record, recorded } from './results.mjs';

const STEP_LIMIT_MS = 60 * 60_000;
const LAST_LINES = 5;
const LAST_CHARACTERS = 600;

/** A step that counts as one check, passed when its command ends with 0. */
export const check = (name, ...command) => ({ name, command, counts: true });
/** A step that counts its tests and records them itself. `otherwise`: the step that takes its place where it could not run. */
export const suite = (name, ...command) => ({ name, command });
/** A step that only makes sooner what later ones need. They make it again, and tell what is wrong. */
export const ahead = (name, ...command) => ({ name, command, ahead: true });

const minutes = (ms) => `${(ms / 60_000).toFixed(1)} min`;

/** Runs a step's command. `live`: its output is passed on as it comes, and not when it has ended. */
async function outcome({ name, command }, live) {
  console.log(`\n== ${name}: ${command.join(' ')}${live ? '' : ' …'}`);
  const ended = await run(command, { live, limitMs: STEP_LIMIT_MS, env: { RDMA_RPC_STEP: name } }).then(
    (output) => ({ code: 0, output }),
    ({ code, output, message }) => ({ code, output, message }),
  );
  if (!live) console.log(`\n== ${name}: ${command.join(' ')}\n${ended.output}`);
  return ended;
}

/** Of the output of a step that failed: a log may keep only its own end, and the sum is there. */
function lastLines(output) {
  const lines = output.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '')
    .slice(-LAST_LINES)
    .join(' | ')
    .slice(-LAST_CHARACTERS);
}

async function runStep(step, live, took) {
  const begin = performance.now();
  const { code, output, message } = await outcome(step, live);
  took.push(`${minutes(performance.now() - begin)}: ${step.name}`);
  if (step.ahead) return;
  if (code === NOT_RUN && step.otherwise !== undefined) await runStep(step.otherwise, live, took);
  if (step.counts && code === 0) record(step.name, { passed: 1 });
  if (step.counts && code === NOT_RUN) record(step.name, { whyNot: [reason(output)] });
  // A suite that failed without a word must not be forgotten.
  const explained = recorded().some((result) => result.step === step.name && result.failed > 0);
  if (code !== 0 && code !== NOT_RUN && !explained)
    record(step.name, { failed: 1, note: `${message}: ${lastLines(output)}` });
}

async function runLane(steps, live, took) {
  for (const step of steps) await runStep(step, live, took);
}

/** Resolves to a line for each step in the order in which they ended: how long it took. */
export async function runStages(stages) {
  const took = [];
  for (const stage of stages) {
    await Promise.all(stage.map((lane) => runLane(lane, stage.length === 1, took)));
  }
  return took;
}
