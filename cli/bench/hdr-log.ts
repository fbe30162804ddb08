/**
 * Writes the latencies of a load as a log of HdrHistogram, one interval per line, for tools that read this
 * format. `rdma-rpc bench --hdr-log` uses this file.
 */
import { HistogramLogWriter } from '#hdr-histogram';
import { newHistogram, type Recording } from './recording.ts';

const maximumIn = 1e6;
const shortestMs = 1000;

/**
 * An interval of the log has at least a second. Corrected latencies, which count from the scheduled times,
 * are tagged.
 */
export function hdrLog(recording: Recording, startedAt: Date): string {
  let text = '';
  const writer = new HistogramLogWriter((part) => {
    text += part.replace(/\n+$/, '\n');
  });
  writer.outputLogFormatVersion();
  writer.outputComment(
    '[Latencies of rdma-rpc bench in nanoseconds; Interval_Max in ms; Tag=corrected: from when calls were meant to begin]',
  );
  writer.outputStartTime(startedAt.getTime());
  writer.outputLegend();
  const { intervals, widthMs } = recording;
  const group = Math.max(1, Math.ceil(shortestMs / widthMs));
  for (let i = 0; i < intervals.length; i += group) {
    const some = intervals.slice(i, i + group);
    for (const which of ['raw', 'corrected'] as const) {
      const sum = newHistogram();
      if (which === 'corrected') {
        if (some[0]!.corrected === undefined) continue;
        sum.tag = which;
      }
      for (const { [which]: one } of some) if (one !== undefined) sum.add(one);
      if (sum.totalCount === 0) continue;
      writer.outputIntervalHistogram(
        sum,
        (i * widthMs) / 1000,
        ((i + some.length) * widthMs) / 1000,
        maximumIn,
      );
    }
  }
  return text;
}
