/**
 * Records every call of a load, for `rdma-rpc bench --csv`. The records are kept in memory, so that no file
 * is written during the measurement. recording.ts uses this file.
 */

const chunkRows = 1 << 16;
const columns = 4;
/** Each row takes 32 bytes. */
const rowsMax = 2_000_000;

export class CallTable {
  readonly #chunks: Float64Array[] = [];
  readonly #codes: string[] = [];
  #rows = 0;
  /** Number of calls beyond `rowsMax`. */
  left = 0;

  add(intended: number, started: number, ended: number, code: string): void {
    if (this.#rows === rowsMax) {
      ++this.left;
      return;
    }
    const at = this.#rows++ % chunkRows;
    if (at === 0) this.#chunks.push(new Float64Array(chunkRows * columns));
    let index = this.#codes.indexOf(code);
    if (index < 0) index = this.#codes.push(code) - 1;
    this.#chunks.at(-1)!.set([intended, started, ended, index], at * columns);
  }

  /**
   * Yields parts of the text. The first part has the names of the columns. Times are in ms since the
   * beginning; latencies are in microseconds, as in the other outputs.
   */
  *csv(): Generator<string> {
    yield 'intended_ms,started_ms,raw_us,corrected_us,code\n';
    for (const [n, chunk] of this.#chunks.entries()) {
      const lines: string[] = [];
      const rows = Math.min(chunkRows, this.#rows - n * chunkRows);
      for (let at = 0; at < rows * columns; at += columns) {
        const [intended, started, ended, code] = chunk.subarray(at, at + columns) as unknown as [
          number,
          number,
          number,
          number,
        ];
        const us = (ms: number): string => (1000 * ms).toFixed(1);
        const times = [intended.toFixed(4), started.toFixed(4), us(ended - started), us(ended - intended)];
        lines.push(`${times.join(',')},${this.#codes[code]!}\n`);
      }
      yield lines.join('');
    }
  }
}
