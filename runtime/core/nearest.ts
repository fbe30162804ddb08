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

/** How many letters both begin with. */
function beginning(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) ++length;
  return length;
}

/** Further edits than that are no slip. */
const editsMax = (word: string): number => (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3)));

/**
 * The one that is called `word` elsewhere, else the one that is few edits away, in the words' order or
 * another, else the one that begins alike. Undefined: none is like it, and a guess would mislead.
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

/** Lists that are longer help nobody. */
const listedMax = 12;

/** What goes behind the word that is not known. */
export function meantInstead(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  if (meant !== undefined) return `; did you mean ${meant}?`;
  return known.length > 0 && known.length <= listedMax ? `; there are ${known.join(', ')}` : '';
}

/** The same if it is similar enough to be a slip, `user_id` for `userId` among them. */
export function slipOf(word: string, known: readonly string[]): string | undefined {
  const best = scored(word.replaceAll('_', ''), known);
  return best !== undefined && best.score <= editsMax(word) ? best.name : undefined;
}
