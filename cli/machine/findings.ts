/** What `rdma-rpc doctor` finds: the form of it, and its text. */

/**
 * `problem`: something does not work; `advice`: it works, and could be better; `ok`: looked at, and in order.
 */
export type Level = 'ok' | 'advice' | 'problem';

export interface Finding {
  /** What was looked at: a name of `checks.ts`. */
  readonly check: string;
  readonly level: Level;
  readonly what: string;
  /** What to do; not for what is in order. */
  readonly remedy?: string;
}

export const ok = (check: string, what: string): Finding => ({ check, level: 'ok', what });
export const advice = (check: string, what: string, remedy: string): Finding => ({
  check,
  level: 'advice',
  what,
  remedy,
});
export const problem = (check: string, what: string, remedy: string): Finding => ({
  check,
  level: 'problem',
  what,
  remedy,
});

/** A line each, with the remedy below it; then the sum. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, level, what, remedy }) => {
    const line = `${level.padEnd(7)}  ${check.padEnd(width)}  ${what}`;
    return remedy === undefined ? [line] : [line, `${' '.repeat(11 + width)}→ ${remedy}`];
  });
  const count = (level: Level): number => findings.filter((each) => each.level === level).length;
  const some = (number: number, word: string): string =>
    `${number} ${number === 1 ? word : word === 'advice' ? 'pieces of advice' : `${word}s`}`;
  return [
    ...lines,
    '',
    `${some(count('problem'), 'problem')}, ${count('advice') === 1 ? '1 piece of advice' : some(count('advice'), 'advice')}, ${count('ok')} in order`,
  ].join('\n');
}
