/**
 * Reads the output of a GoogleTest program. It uses the lines printed during the run, not the file that the
 * program writes at its end, because a test may crash the program, or the kernel below it.
 */
import { reason } from './results.mjs';

const PLANNED = /^\[=+\] Running (\d+) tests? /m;
const BEGIN = /^\[ RUN {6}\] (\S+)/;
const END = /\[ +(OK|FAILED|SKIPPED) +\] .*\((\d+) ms\)$/;

/**
 * Reads the output of a GoogleTest program. `failures` has the names of the tests that failed, and `notRun`
 * the number of tests by reason. A test that began and did not end has failed; `note` names it. `ended` says
 * whether all planned tests have ended. `timed` has the duration of each test.
 */
export function readGtest(output) {
  const report = { passed: 0, failed: 0, failures: [], notRun: new Map(), note: '', ended: false, timed: [] };
  const skip = (why, count = 1) => report.notRun.set(why, (report.notRun.get(why) ?? 0) + count);
  const fail = (name) => {
    report.failed += 1;
    report.failures.push(name);
  };
  let ended = 0;
  let running = '';
  let text = '';
  for (const line of output.split('\n')) {
    const [, end, ms] = END.exec(line) ?? [];
    text += `${line}\n`;
    if (end === undefined) {
      const begun = BEGIN.exec(line)?.[1];
      if (begun !== undefined) [running, text] = [begun, ''];
      continue;
    }
    if (end === 'OK') report.passed += 1;
    else if (end === 'FAILED') fail(running);
    else skip(reason(text));
    report.timed.push({ name: running, ms: Number(ms) });
    ended += 1;
    running = '';
  }
  if (running !== '') {
    fail(running);
    report.note = `${running} did not end`;
    ended += 1;
  }
  const planned = Number(PLANNED.exec(output)?.[1] ?? 0);
  const left = planned - ended;
  report.ended = planned > 0 && left === 0 && report.note === '';
  if (left > 0) skip(report.note === '' ? 'the program ended before them' : report.note, left);
  return report;
}

/** Returns the output without the tests that passed or were skipped. */
export function failuresOf(output) {
  const kept = [];
  let test = [];
  for (const line of output.split('\n')) {
    if (BEGIN.test(line)) kept.push(...test.splice(0));
    test.push(line);
    const end = END.exec(line)?.[1];
    if (end === undefined) continue;
    if (end === 'FAILED') kept.push(...test);
    test = [];
  }
  return [...kept, ...test].filter((line) => !/^\[[-=]+\]/.test(line)).join('\n');
}
