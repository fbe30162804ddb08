/** The findings of `rdma-rpc doctor`, and their text. */

/**
 * `problem`: something does not work; `advice`: it works, but could be better; `ok`: checked and in order.
 */
export type Level = 'ok' | 'advice' | 'problem';

export interface Finding {
  /** The subject of the check: a name in `checks.ts`. */
  readonly check: string;
  readonly level: Level;
  readonly what: string;
  /** The remedy; absent for `ok`. */
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

/** Returns a line for each finding, with the remedy below the finding, and a summary. */
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
