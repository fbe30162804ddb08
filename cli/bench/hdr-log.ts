/**
 * The latencies of a load as a log of HdrHistogram: an interval a line, for the tools that read those. Used
 * by `rdma-rpc bench --hdr-log`.
 */
import { HistogramLogWriter } from '#hdr-histogram';
import { newHistogram, type Recording } from './recording.ts';

/** The unit of the values is the nanosecond, that of the column with the maximum the millisecond. */
const maximumIn = 1e6;
const shortestMs = 1000;

/** Intervals of a second at least; those that are corrected have a tag for it. */
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
