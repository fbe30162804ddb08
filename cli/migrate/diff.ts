/** The edits of a file as a unified diff, for `rdma-rpc migrate --dry-run`. */
import type { Edit } from './edits.ts';

const contextLines = 3;

/** A range of lines of the old text, [first, end) counted from 0, and the edits in this range. */
interface Hunk {
  first: number;
  end: number;
  edits: Edit[];
}

/** Returns the diff, or '' when there are no edits. `edits` must be sorted and must not overlap. */
export function unifiedDiff(path: string, source: string, edits: readonly Edit[]): string {
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lines = source.split('\n');
  const lineAt = (offset: number): number => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const hunks: Hunk[] = [];
  for (const edit of edits) {
    const [first, end] = [lineAt(edit.start), lineAt(edit.end) + 1];
    const last = hunks.at(-1);
    if (last !== undefined && first <= last.end + 2 * contextLines) {
      last.end = Math.max(last.end, end);
      last.edits.push(edit);
    } else hunks.push({ first, end, edits: [edit] });
  }
  if (hunks.length === 0) return '';
  let moved = 0;
  const texts = hunks.map((hunk) => {
    const before = changedLines(source, lines, starts, hunk);
    const [top, bottom] = [
      Math.max(0, hunk.first - contextLines),
      Math.min(lines.length, hunk.end + contextLines),
    ];
    const body = [
      ...lines.slice(top, hunk.first).map((line) => ` ${line}`),
      ...before,
      ...lines.slice(hunk.end, bottom).map((line) => ` ${line}`),
    ];
    const count = (sign: string): number => body.filter((line) => line[0] === ' ' || line[0] === sign).length;
    const head = `@@ -${top + 1},${count('-')} +${top + 1 + moved},${count('+')} @@`;
    moved += count('+') - count('-');
    return [head, ...body].join('\n');
  });
  return `--- ${path}\n+++ ${path}\n${texts.join('\n')}\n`;
}

/** Returns the lines of a hunk. Lines between two edits are unchanged. */
function changedLines(
  source: string,
  lines: readonly string[],
  starts: readonly number[],
  hunk: Hunk,
): string[] {
  const from = starts[hunk.first]!;
  const to = hunk.end < starts.length ? starts[hunk.end]! - 1 : source.length;
  let [after, at] = ['', from];
  for (const edit of hunk.edits) {
    after += source.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  const added = (after + source.slice(at, to)).split('\n');
  const removed = lines.slice(hunk.first, hunk.end);
  return compared(removed, added);
}

/**
 * Maximum of old lines × new lines that are compared. Larger hunks are shown as all old lines followed by all
 * new lines.
 */
const comparedMax = 1_000_000;

/** Compares two texts by their longest common subsequence of lines, and returns the lines of the diff. */
function compared(before: readonly string[], after: readonly string[]): string[] {
  if (before.length * after.length > comparedMax)
    return [...before.map((line) => `-${line}`), ...after.map((line) => `+${line}`)];
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width);
  for (let a = before.length - 1; a >= 0; --a)
    for (let b = after.length - 1; b >= 0; --b)
      common[a * width + b] =
        before[a] === after[b]
          ? common[(a + 1) * width + b + 1]! + 1
          : Math.max(common[(a + 1) * width + b]!, common[a * width + b + 1]!);
  const lines: string[] = [];
  let [a, b] = [0, 0];
  while (a < before.length || b < after.length) {
    const down = a < before.length ? common[(a + 1) * width + b]! : -1;
    const right = b < after.length ? common[a * width + b + 1]! : -1;
    if (a < before.length && b < after.length && before[a] === after[b]) {
      lines.push(` ${before[a++]}`);
      ++b;
    } else if (down >= right) lines.push(`-${before[a++]}`);
    else lines.push(`+${after[b++]}`);
  }
  return lines;
}
