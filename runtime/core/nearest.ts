/** The word that somebody may have meant. For messages about names that do not exist: options, fields. */

/** Edits that turn one word into the other. Words are short. */
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

/** The same by share of the letters: a short name is not near to everything. */
function alike(word: string, known: readonly string[]): string | undefined {
  const lower = word.slice(0, 64).toLowerCase();
  const share = (name: string): number =>
    distance(lower, name.toLowerCase()) / Math.max(lower.length, name.length);
  return known.map((name) => ({ name, share: share(name) })).sort((a, b) => a.share - b.share)[0]?.name;
}

/** `maxTimeoutMs` and `timeoutMaxMs` have the same. */
const sortedWords = (name: string): string =>
  (name.match(/[A-Z]?[^A-Z_]+|[A-Z]/g) ?? [])
    .map((part) => part.toLowerCase())
    .sort()
    .join('');

/** What options are called elsewhere, in gRPC and Connect. */
const elsewhere: ReadonlyMap<string, string> = new Map([
  ['deadline', 'timeoutMs'],
  ['headers', 'metadata'],
  ['contextValues', 'values'],
  // Of errors.
  ['metadata', 'trailer'],
  ['sent', 'processed'],
]);

/** The most similar of them, however little that is; before it, the one that has the same words, or that is called `word` elsewhere. */
export function nearest(word: string, known: readonly string[]): string {
  const meant = elsewhere.get(word);
  if (meant !== undefined && known.includes(meant)) return meant;
  const words = sortedWords(word.slice(0, 64));
  return known.find((name) => sortedWords(name) === words) ?? alike(word, known) ?? '';
}

/** The same if it is similar enough to be a slip, `user_id` for `userId` among them. */
export function slipOf(word: string, known: readonly string[]): string | undefined {
  const best = scored(word.replaceAll('_', ''), known);
  return best !== undefined && best.score <= (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3)))
    ? best.name
    : undefined;
}
