/**
 * Checks ranges of numbers that are reserved or left to extensions, and reserved names, for duplicates and
 * overlaps. check.ts calls it.
 */

/** A range of numbers. `end` is the last number in it. */
export interface NumberRange {
  readonly start: number;
  readonly end: number;
  readonly what: 'reserved range' | 'extension range';
  /** Path of its declaration, for the report. */
  readonly path: string;
}

const text = ({ start, end }: NumberRange) => (start === end ? String(start) : `${start} to ${end}`);

/**
 * Reports each range that overlaps an earlier one. The ranges are sorted first, so that the check is fast
 * even for thousands of ranges.
 */
export function checkRanges(
  ranges: readonly NumberRange[],
  report: (path: string, message: string) => void,
): void {
  const sorted = ranges
    .map((range, order) => ({ range, order }))
    .sort((a, b) => a.range.start - b.range.start);
  let last = sorted[0];
  for (const each of sorted.slice(1)) {
    if (last !== undefined && each.range.start <= last.range.end) {
      const [first, second] = each.order > last.order ? [last.range, each.range] : [each.range, last.range];
      report(second.path, `${second.what} ${text(second)} overlaps ${first.what} ${text(first)}`);
    }
    if (last === undefined || each.range.end > last.range.end) last = each;
  }
}

/** Reports each repeated name. */
export function checkReservedNames(
  names: readonly string[],
  path: string,
  report: (path: string, message: string) => void,
): void {
  const seen = new Set<string>();
  names.forEach((name, i) => {
    if (seen.has(name)) report(`${path},${i}`, `the name ${name} is reserved more than once`);
    else if (!/^[A-Za-z_]\w*$/.test(name)) report(`${path},${i}`, `${JSON.stringify(name)} is not a name`);
    seen.add(name);
  });
}
