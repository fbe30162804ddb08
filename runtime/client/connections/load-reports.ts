/**
 * Reads the load reports of a server from the trailers of its responses, and computes the weight of the
 * server from them. The connections of a channel call these functions for each connection with weighted round
 * robin. Reports are read for each answer of a unary call, and at the end of each stream.
 */
import { Incoming } from '../../boundary/incoming/incoming.ts';
import { clockMs } from '../../clock.ts';
import { decodeLoadReport, loadReportKey } from '../../core/load-report.ts';
import { keyOf } from '../../core/metadata-keys.ts';
import { firstValue } from '../../core/metadata-wire.ts';
import { type LoadReportSettings, LoadWeight } from '../balancing/load-weight.ts';
import type { ClientLink } from './client-link.ts';

const key = keyOf(loadReportKey).bytes;

/** Begins to read the reports of a connection. Does nothing when they are already read. */
export function takeReports(link: ClientLink, settings: LoadReportSettings): void {
  if (link.loads !== undefined) return;
  const { context, target } = link.connection;
  const loads = new LoadWeight(settings);
  const incoming = new Incoming(context, target.session);
  link.loads = loads;
  link.session.tally.onAnswer = (at) => {
    const metadata = incoming.metadataBytes(at, true);
    const value = metadata instanceof Uint8Array ? firstValue(metadata, key) : undefined;
    const report = value && decodeLoadReport(value);
    if (report !== undefined) loads.report(report, clockMs());
  };
}
