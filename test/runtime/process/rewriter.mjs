/**
 * Runs as a process of the same user that writes into another process's shared memory, as a hostile peer can.
 * The process writes bytes that make texts longer, shorter and invalid, wherever messages lie.
 * rewritten.test.ts starts it with its own process id and the names of segments.
 */
import { openSync, readdirSync, readlinkSync, readSync, writeSync } from 'node:fs';

const [pid, ...names] = process.argv.slice(2);
const pageBytes = 4096;
/** The number of writes after which it searches for messages again. */
const lookEvery = 200_000;
/**
 * The bytes that matter to a decoder of texts: first and later bytes of characters, ends of varints, and
 * lengths.
 */
const values = Buffer.from([
  0x61, 0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xf0, 0x80, 0xff, 0x00, 0x0a, 0xc1, 0xdf, 0x7f,
]);

const opened = new Map();

/** Returns the process's segments with these names, open for writing. */
function segments() {
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const path = `/proc/${pid}/fd/${fd}`;
    try {
      const target = readlinkSync(path);
      if (opened.has(path) || !names.some((name) => target.includes(`memfd:rdma-rpc:${name}`))) continue;
      opened.set(path, openSync(path, 'r+'));
    } catch {
      // The process may have closed the segment since then.
    }
  }
  return [...opened.values()];
}

/** Returns the pages that contain data. */
function livePages() {
  const chunk = Buffer.alloc(256 * pageBytes);
  const zeros = Buffer.alloc(pageBytes);
  return segments().flatMap((fd) => {
    const pages = [];
    for (let at = 0; ; at += chunk.length) {
      const bytes = readSync(fd, chunk, 0, chunk.length, at);
      if (bytes === 0) return pages;
      // Writes whole pages, because nothing can be written beyond the end of the segment.
      for (let from = 0; from + pageBytes <= bytes; from += pageBytes)
        if (!chunk.subarray(from, from + pageBytes).equals(zeros)) pages.push({ fd, at: at + from });
    }
  });
}

let state = 1;
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};

process.on('disconnect', () => process.exit());
(function round() {
  const pages = livePages();
  process.send({ pages: pages.length });
  if (pages.length > 0) {
    for (let i = 0; i < lookEvery; i++) {
      const { fd, at } = pages[random(pages.length)];
      const from = random(values.length);
      writeSync(fd, values, from, 1 + random(values.length - from), at + random(pageBytes - values.length));
    }
  }
  setImmediate(round);
})();
