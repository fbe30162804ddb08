/** The file of results has two parts, each written by its own command: that of `npm run bench`, then that of `npm run bench:verbs`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Opens the second part. */
export const verbsHeading = '## Real RDMA';

/** Writes one part and keeps the other. */
export function writePart(file: string, part: 'main' | 'verbs', text: string): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const cut = before.indexOf(`${verbsHeading}\n`);
  const main = part === 'main' ? text : before.slice(0, cut < 0 ? undefined : cut);
  const verbs = part === 'verbs' ? text : cut < 0 ? '' : before.slice(cut);
  writeFileSync(
    file,
    [main, verbs]
      .filter((each) => each !== '')
      .map((each) => `${each.trimEnd()}\n`)
      .join('\n'),
  );
}
