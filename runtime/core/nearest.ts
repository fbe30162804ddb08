/** Finds the name that the user probably meant, for error texts about unknown options and fields. */

/** Returns the edit distance of two short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; ++j) {
      const replace = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(replace, above[j]! + 1, row[j - 1]! + 1);
    }
  }
  return row[b.length]!;
}

function scored(word: string, known: readonly string[]): { name: string; score: number } | undefined {
  const lower = word.slice(0, 64).toLowerCase();
  return known
    .map((name) => ({ name, score: distance(lower, name.toLowerCase()) }))
    .sort((a, b) => a.score - b.score)[0];
}

/** Returns the sorted parts of a name, so that `maxTimeoutMs` and `timeoutMaxMs` become equal. */
const sortedWords = (name: string): string =>
  (name.match(/[A-Z]?[^A-Z_]+|[A-Z]/g) ?? [])
    .map((part) => part.toLowerCase())
    .sort()
    .join('');

/** Names of options in gRPC and Connect, with the name that this library uses. */
const elsewhere: ReadonlyMap<string, string> = new Map([
  ['deadline', 'timeoutMs'],
  ['headers', 'metadata'],
  ['contextValues', 'values'],
  // The following names are options of errors.
  ['metadata', 'trailer'],
  ['sent', 'processed'],
]);

/** Returns the length of the common prefix. */
function beginning(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) ++length;
  return length;
}

/** Returns the largest edit distance that still counts as a typing error. */
const editsMax = (word: string): number => (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3)));

/**
 * Returns the known name for what other libraries call `word`, if there is one. Otherwise returns a known
 * name that differs from `word` by only a few edits (its parts may be in another order), or a known name with
 * the same prefix. Returns undefined when no known name is similar, because a guess would mislead.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const meant = elsewhere.get(word);
  if (meant !== undefined && known.includes(meant)) return meant;
  const cut = word.slice(0, 64);
  const [lower, words] = [cut.toLowerCase(), sortedWords(cut)];
  const best = known
    .map((name) => {
      const edits = Math.min(distance(lower, name.toLowerCase()), distance(words, sortedWords(name)));
      return { name, edits, same: beginning(lower, name.toLowerCase()) };
    })
    .sort((a, b) => a.edits - b.edits || b.same - a.same);
  if (best[0] !== undefined && best[0].edits <= editsMax(cut)) return best[0].name;
  const [alike] = best.sort((a, b) => b.same - a.same || a.edits - b.edits);
  return alike !== undefined && alike.same >= Math.max(3, Math.min(4, cut.length)) ? alike.name : undefined;
}

/** Limit of the names that an error text lists. Longer lists are not shown. */
const listedMax = 12;

/** Returns the text that an error shows behind an unknown word. */
export function meantInstead(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  if (meant !== undefined) return `; did you mean ${meant}?`;
  return known.length > 0 && known.length <= listedMax ? `; there are ${known.join(', ')}` : '';
}

/** Returns the known name that `word` is probably a typing error of, such as `userId` for `user_id`. */
export function slipOf(word: string, known: readonly string[]): string | undefined {
  const best = scored(word.replaceAll('_', ''), known);
  return best !== undefined && best.score <= editsMax(word) ? best.name : undefined;
}
