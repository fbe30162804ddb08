/**
 * The output of `rdma-rpc ping` about one connection: the text, line by line, and the JSON.
 */
import type { SessionSummary } from '../../runtime/control/session-summary.ts';
import { printableLine } from '../output.ts';
import type { Stopped } from './reach.ts';
import { type Round, type Spread, spreadOf } from './rounds.ts';
import { type StepName, stepTexts, type TimedStep, type Timeline } from './steps.ts';

export const milliseconds = (ms: number): string => `${ms.toFixed(ms < 10 ? 3 : 1)} ms`;

const timeWidth = 12;

export function stepLine({ step, ms, about, failed }: TimedStep): string {
  const what = [stepTexts[step], about].filter(Boolean).join(': ');
  const text = failed === undefined ? what : `${what} failed: ${failed}`;
  return printableLine(`${step.padEnd(8)} ${milliseconds(ms).padStart(timeWidth)}  ${text}`);
}

/** Returns a line about the session, and a line for each fabric that was not chosen. */
export function sessionLines(
  { fabric, device, port, security, peer, identity }: SessionSummary,
  { totalMs, others }: Timeline,
): string[] {
  const place = port === 0 ? device : `${device} port ${port}`;
  const by = place === fabric ? fabric : `${fabric} (${place})`;
  const who = identity === undefined ? peer : `${peer}, verified as ${identity}`;
  return [
    `ready    ${milliseconds(totalMs).padStart(timeWidth)}  ${by}, security ${security}, server ${who || 'without a name'}`,
    ...others.map(({ name, reason }) => `  not ${name}: ${reason}`),
  ].map(printableLine);
}

export function roundLine({ sidebandMs, fabricMs }: Round, number: number, fabric: string): string {
  const sideband = sidebandMs === undefined ? '' : `sideband ${milliseconds(sidebandMs)}, `;
  return `round ${number}: ${sideband}${fabric} ${milliseconds(fabricMs)}`;
}

/** The round trips of each kind. */
interface RoundTrips {
  readonly sideband?: Spread;
  readonly fabric?: Spread;
}

function roundTripsOf(rounds: readonly Round[]): RoundTrips {
  const sideband = spreadOf(rounds.flatMap(({ sidebandMs = [] }) => sidebandMs));
  const fabric = spreadOf(rounds.map(({ fabricMs }) => fabricMs));
  return { ...(sideband !== undefined && { sideband }), ...(fabric !== undefined && { fabric }) };
}

const spreadLine = (name: string, { count, min, avg, max }: Spread): string =>
  `${name}: ${count} round trip${count === 1 ? '' : 's'}, min/avg/max ${[min, avg, max].map((ms) => ms.toFixed(3)).join('/')} ms`;

export function roundTripLines(rounds: readonly Round[], fabric: string): string[] {
  const { sideband, fabric: session } = roundTripsOf(rounds);
  return [
    ...(sideband === undefined ? [] : [spreadLine('sideband', sideband)]),
    ...(session === undefined ? [] : [spreadLine(fabric, session)]),
  ];
}

export interface PingResult {
  readonly address: string;
  readonly steps: readonly TimedStep[];
  /** Time until the server has answered for the first time. */
  readonly totalMs: number;
  readonly session?: Pick<SessionSummary, 'fabric' | 'device' | 'port' | 'security' | 'peer' | 'identity'>;
  readonly others: readonly { readonly name: string; readonly reason: string }[];
  readonly rounds: readonly Round[];
  readonly roundTrips: RoundTrips;
  readonly error?: PingError;
}

export interface PingError {
  readonly step: StepName | 'sideband' | 'session';
  readonly message: string;
  readonly next: string;
}

export const errorOf = ({ step, message, next }: Stopped): PingError => ({ step, message, next });

export function resultOf(
  address: string,
  { steps, totalMs, others }: Timeline,
  summary: SessionSummary | undefined,
  rounds: readonly Round[],
  stopped: Stopped | undefined,
): PingResult {
  return {
    address,
    steps,
    totalMs,
    ...(summary !== undefined && { session: sessionOf(summary) }),
    others,
    rounds,
    roundTrips: roundTripsOf(rounds),
    ...(stopped !== undefined && { error: errorOf(stopped) }),
  };
}

function sessionOf({
  fabric,
  device,
  port,
  security,
  peer,
  identity,
}: SessionSummary): PingResult['session'] {
  return { fabric, device, port, security, peer, identity };
}
