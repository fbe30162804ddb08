/**
 * The file of results has parts, each written by a command of its own: `npm run bench`, `npm run
 * bench:stream`, `npm run bench:codec`, `npm run bench:verbs` with and without `--perf`. No command writes
 * the notes, what unary calls became with streams, and the one over TCP: these are kept by hand.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Open the parts but the first. */
export const notesHeading = '## Small and medium calls beside the bare ring';
export const streamsHeading = '## Streams';
const unaryHeading = '## Unary calls before and after streams';
export const codecHeading = '## The codec';
export const verbsHeading = '## Real RDMA';
/** Of the same part, behind the sessions. */
export const verbsPerfHeading = '### `rdma-rpc perf` beside perftest';
export const tcpHeading = '## Over TCP, and sealed';

const parts = {
  main: undefined,
  notes: notesHeading,
  streams: streamsHeading,
  unary: unaryHeading,
  codec: codecHeading,
  verbs: verbsHeading,
  verbsPerf: verbsPerfHeading,
  tcp: tcpHeading,
} as const;
type Part = keyof typeof parts;
const names = Object.keys(parts) as Part[];

/** From the part's heading to that of the next one that is there. */
function cut(text: string, part: Part): string {
  const heading = parts[part];
  const start = heading === undefined ? 0 : text.indexOf(`${heading}\n`);
  if (start < 0) return '';
  const later = names.slice(names.indexOf(part) + 1).map((name) => text.indexOf(`${parts[name]}\n`));
  return text.slice(
    start,
    later.find((at) => at >= 0),
  );
}

/** Writes one part and keeps the others. */
export function writePart(file: string, part: Part, text: string): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const kept = names.map((name) => (name === part ? text : cut(before, name)));
  writeFileSync(
    file,
    kept
      .filter((each) => each !== '')
      .map((each) => `${each.trimEnd()}\n`)
      .join('\n'),
  );
}
