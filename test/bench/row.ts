/** Makes a row of results with arbitrary figures. The tests of the benchmark's arithmetic use it. */
import { notAsked, type Row } from '../../bench/rows.ts';

export function row(scenario: string, peer: string, figures: Partial<Row> = {}): Row {
  return {
    scenario,
    peer,
    node: '20.0.0',
    fabric: 'shm',
    payloadBytes: 32,
    inFlight: 1,
    besideBytes: 0,
    callsPerSecond: 1000,
    bytesPerSecond: 32_000,
    p50Us: 1,
    p99Us: 2,
    p999Us: 3,
    cpuPercent: 100,
    ...notAsked,
    placement: 'free, sleeps',
    disturbed: false,
    ...figures,
  };
}
