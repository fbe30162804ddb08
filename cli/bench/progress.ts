/**
 * The progress line of `rdma-rpc bench` on stderr, which is overwritten until the end. It is shown only on a
 * terminal.
 */

const everyMs = 200;
const width = 30;

export interface Standing {
  /** The finished share of the load, from 0 to 1; undefined when it is unknown. */
  readonly share: number | undefined;
  readonly calls: number;
  readonly elapsedMs: number;
  readonly failed: number;
}

function progressLine({ share, calls, elapsedMs, failed }: Standing): string {
  const done = Math.min(1, Math.max(0, share ?? 0));
  const filled = Math.round(done * width);
  const bar =
    share === undefined
      ? ''
      : `[${'='.repeat(filled)}${' '.repeat(width - filled)}] ${Math.floor(100 * done)} % `;
  const rate = elapsedMs === 0 ? 0 : (1000 * calls) / elapsedMs;
  const wrong = failed === 0 ? '' : `, ${failed.toLocaleString('en')} failed`;
  return `${bar}${calls.toLocaleString('en')} calls, ${Math.round(rate).toLocaleString('en')}/s${wrong}, ${(elapsedMs / 1000).toFixed(1)} s`;
}

/** Returns a function that ends the progress line and clears it. */
export function showProgress(stream: NodeJS.WriteStream, standing: () => Standing): () => void {
  if (!stream.isTTY) return () => undefined;
  const timer = setInterval(() => {
    const line = progressLine(standing()).slice(0, Math.max(10, stream.columns - 1));
    stream.write(`\r\u001b[K${line}`);
  }, everyMs);
  return () => {
    clearInterval(timer);
    stream.write('\r\u001b[K');
  };
}
